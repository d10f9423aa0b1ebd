"""Fixtures for the process tests."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from tests.support.children import Children


@pytest.fixture
def children(tmp_path: Path) -> Iterator[Children]:
    """A place for child scripts; whatever a failing test leaves behind is killed."""
    made = Children(tmp_path / "children")
    yield made
    for process in made.alive():
        with suppress(psutil.Error):
            process.kill()
