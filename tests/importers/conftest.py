"""Importing a small text of another tool."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from skillup.importers.convert import Format, import_files
from tests.support.imported import Convert, Result


@pytest.fixture
def convert(tmp_path: Path) -> Convert:
    """Write a text to a file of that name, import it, and check that the result loads."""

    def run(text: str, name: str = "suite.yaml", format_: Format | None = None) -> Result:
        source = tmp_path / "project" / "evals" / name
        source.parent.mkdir(parents=True, exist_ok=True)
        source.write_text(textwrap.dedent(text), encoding="utf-8")
        (imported,) = import_files([source], tmp_path / "out", format_=format_)
        result = Result(imported)
        result.loads()
        return result

    return run
