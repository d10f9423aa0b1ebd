"""An empty index."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture
def index(tmp_path: Path) -> str:
    """The path of an index that nobody has written."""
    return str(tmp_path / "index.sqlite")
