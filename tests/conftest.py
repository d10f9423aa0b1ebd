"""Fixtures for every test."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.project import Project


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """An empty project with a home of its own."""
    return Project(tmp_path)
