"""Code blocks of Markdown files, with the marker that says what a test does with each.

A marker is an HTML comment on a line of its own before a block or a table: ``<!-- ACTION: VALUE,
KEY: VALUE -->``. What stands before blocks is told in `tests/docs/test_examples.py`; before tables
stand ``keys: MODEL …`` (the first column names their keys), ``kinds``, ``options: VERB``, ``verbs``
and ``permissions``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parents[2]
# The guide first: other pages build on its examples.
_FIRST = (
    ROOT / "README.md",
    *(ROOT / "docs" / f"{n}.md" for n in ("writing-cases", "case-language")),
)
PAGES = tuple(dict.fromkeys([*_FIRST, *sorted((ROOT / "docs").glob("*.md"))]))

_MARKER = re.compile(r"<!-- (?P<what>[a-z]+.*) -->")
_FENCE = re.compile(r"(?P<fence>```+)(?P<language>\w*).*")


@dataclass(frozen=True)
class Marker:
    """``<!-- run: pass, name: two-turns -->`` → ``run``, ``pass``, ``{name: two-turns}``."""

    action: str
    value: str = ""
    options: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Block:
    page: Path
    line: int
    """Of the opening fence, from 1."""
    language: str
    text: str
    marker: Marker | None

    @property
    def place(self) -> str:
        return f"{self.page.name}:{self.line}"


@dataclass(frozen=True)
class Table:
    page: Path
    line: int
    """Of the header, from 1."""
    rows: list[list[str]]
    """Without the header."""
    marker: Marker

    @property
    def place(self) -> str:
        return f"{self.page.name}:{self.line}"

    def names(self) -> list[str]:
        """Every code span of the first column."""
        return [name for row in self.rows for name in re.findall(r"`([^`]+)`", row[0])]


def blocks_of(page: Path) -> Iterator[Block]:
    marker: Marker | None = None
    lines = enumerate(page.read_text("utf-8").splitlines(), start=1)
    for number, line in lines:
        fence = _FENCE.fullmatch(line)
        if fence is None:
            marker = marker_of(line) if line.strip() else marker
            continue
        inside = []
        for _, text in lines:
            if text == fence["fence"]:
                break
            inside.append(text)
        yield Block(page, number, fence["language"], "\n".join(inside) + "\n", marker)
        marker = None


def tables_of(page: Path) -> Iterator[Table]:
    """The tables of a page that have a marker, in order."""
    marker: Marker | None = None
    header = 0
    rows: list[list[str]] = []
    for number, line in enumerate([*page.read_text("utf-8").splitlines(), ""], start=1):
        if line.startswith("|"):
            header = header or number
            rows.append([cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]])
            continue
        if rows and marker is not None:
            yield Table(page, header, rows[2:], marker)
        if rows or line.strip():
            marker = marker_of(line)
        header, rows = 0, []


def marker_of(line: str) -> Marker | None:
    """The marker that a line is; None if it is none."""
    found = _MARKER.fullmatch(line.strip())
    if found is None:
        return None
    pairs = [part.partition(":") for part in found["what"].split(", ")]
    (action, _, value), *rest = [(key.strip(), mark, text.strip()) for key, mark, text in pairs]
    return Marker(action, value, {key: text for key, _, text in rest})
