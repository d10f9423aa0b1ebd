"""What became of a small text of another tool."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from skillup.importers.convert import Imported
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

    def loads(self) -> None:
        loaded = load_paths([self.imported.directory])
        assert not loaded.errors


Convert = Callable[..., Result]
"""``convert(text, name, format_)``: the fixture of ``tests/importers``."""
