"""What a conversion has to tell: each thing that was lost or changed, and where it stood."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

Loc = tuple[str | int, ...]
Kind = Literal["lost", "changed"]


@dataclass(frozen=True, slots=True)
class Note:
    """One thing that did not come over as it was. Lines and columns count from 1."""

    file: Path
    line: int
    column: int
    field: str
    what: str
    instead: str
    kind: Kind = "lost"

    def __str__(self) -> str:
        where = f"{self.file}:{self.line}:{self.column}"
        field = f" {self.field}:" if self.field else ""
        instead = f"; {self.instead}" if self.instead else ""
        return f"{where}:{field} {self.what}{instead}"

    def as_dict(self, shown: str) -> dict[str, Any]:
        """For ``--json``; `shown` is the file's name as people should see it."""
        return {
            "file": shown,
            "line": self.line,
            "column": self.column,
            "field": self.field,
            "kind": self.kind,
            "what": self.what,
            "instead": self.instead,
        }


@dataclass(slots=True)
class ImportNotes:
    """Which values of one source have been used, and what is to be said about others."""

    used: set[Loc] = field(default_factory=set)
    notes: dict[tuple[Loc, str], tuple[str, Kind]] = field(default_factory=dict)

    def use(self, loc: Loc) -> None:
        """Everything at and below `loc` has come over."""
        self.used.add(loc)

    def note(self, loc: Loc, what: str, instead: str, kind: Kind) -> None:
        """Say it once, however often the value is looked at."""
        self.notes.setdefault((loc, what), (instead, kind))


def unused(data: Any, used: set[Loc]) -> Iterator[Loc]:
    """The highest places in `data` below which nothing was used, in the data's order.

    The data as a whole is never such a place: then each of its own keys is.
    """
    inner = {loc[:length] for loc in used for length in range(len(loc))}
    yield from _unused(data, (), used, inner)


def _unused(data: Any, loc: Loc, used: set[Loc], inner: set[Loc]) -> Iterator[Loc]:
    if loc in used:
        return
    if loc and loc not in inner:
        # The only thing in a mapping says more than the mapping.
        while isinstance(data, dict) and len(data) == 1:
            key, data = next(iter(data.items()))
            loc = (*loc, key)
        yield loc
        return
    if isinstance(data, dict):
        for key, value in data.items():
            yield from _unused(value, (*loc, key), used, inner)
    elif isinstance(data, list):
        for index, value in enumerate(data):
            yield from _unused(value, (*loc, index), used, inner)
