"""Importing a small text of another tool."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from skillup.importers.convert import Imported, import_files
from skillup.load.suites import load_paths
from skillup.load.yaml_reader import read_yaml


@dataclass(frozen=True)
class Result:
    """What an import wrote."""

    imported: Imported

    @property
    def suite(self) -> dict[str, Any]:
        return read_yaml(self.imported.directory / "eval.yaml").data

    @property
    def cases(self) -> list[dict[str, Any]]:
        directory = self.imported.directory
        return [read_yaml(directory / case.file).data for case in self.imported.draft.cases]

    @property
    def case(self) -> dict[str, Any]:
        (only,) = self.cases
        return only

    @property
    def notes(self) -> list[str]:
        return [str(note).removeprefix(str(note.file)) for note in self.imported.notes]

    def noted(self, field: str) -> list[str]:
        return [note.message for note in self.imported.notes if note.field == field]


Convert = Callable[..., Result]


@pytest.fixture
def convert(tmp_path: Path) -> Convert:
    """Write a text to a file of that name, import it, and check that the result loads."""

    def run(text: str, name: str = "suite.yaml", format_: str | None = None) -> Result:
        source = tmp_path / "project" / "evals" / name
        source.parent.mkdir(parents=True, exist_ok=True)
        source.write_text(textwrap.dedent(text), encoding="utf-8")
        (imported,) = import_files([source], tmp_path / "out", format_=format_)
        assert not load_paths([imported.directory]).errors
        return Result(imported)

    return run
