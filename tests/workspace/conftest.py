"""Fixtures of the workspace's tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.preparation import Preparation


@pytest.fixture
def preparation(tmp_path: Path) -> Preparation:
    """Prepares workspaces from a suite of the test's own."""
    return Preparation(tmp_path)
