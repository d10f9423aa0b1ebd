"""Rows whose cells stand below each other; what is longer than the terminal is wide goes on below.

A table of rich would make every column narrower, and break names and numbers in two.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

_INDENT = 2
_GAP = 2
_DEEPER = 6
"""Where a text begins that has no room beside the cells before it."""
_LEAST_ROOM = 30
"""For that text, else it goes below."""


def print_aligned(console: Console, rows: Sequence[Sequence[Text]]) -> None:
    """Each row indented; its last cell is a text that is folded at words, the others are not.

    A cell that is wider than a third of the terminal pushes only its own row to the right. Where
    there is no terminal, every row is one line: log files are searched line by line.
    """
    third = console.width // 3
    count = max((len(row) for row in rows), default=0)
    widths = [
        max((row[n].cell_len for row in rows if row[n].cell_len <= third), default=0)
        for n in range(count - 1)
    ]
    for row in rows:
        _print_row(console, row, widths)


def print_at_words(console: Console, line: Text) -> None:
    """A sentence: on a terminal folded at words, what goes on being indented."""
    from rich.text import Text

    if not console.is_terminal or line.cell_len <= console.width:
        console.print(line, soft_wrap=True)
        return
    for number, part in enumerate(line.wrap(console, max(_LEAST_ROOM, console.width - _INDENT))):
        part.rstrip()
        console.print(Text(" " * (_INDENT if number else 0)) + part, soft_wrap=True)


def _print_row(console: Console, row: Sequence[Text], widths: Sequence[int]) -> None:
    from rich.text import Text

    lead = Text(" " * _INDENT)
    for cell, width in zip(row[:-1], widths, strict=True):
        lead += cell
        lead += Text(" " * (max(0, width - cell.cell_len) + _GAP))
    note, room = row[-1], console.width - lead.cell_len
    if not console.is_terminal or note.cell_len <= room:
        line = lead + note
        line.rstrip()
        _print_wide(console, line)
        return
    if room >= _LEAST_ROOM:
        first, indent = lead, lead.cell_len
    else:
        lead.rstrip()
        _print_wide(console, lead)
        first, indent = Text(" " * _DEEPER), _DEEPER
    for part in note.wrap(console, max(_LEAST_ROOM, console.width - indent)):
        part.rstrip()
        console.print(first + part, soft_wrap=True)
        first = Text(" " * indent)


def _print_wide(console: Console, line: Text) -> None:
    """A line that may hold a name wider than the terminal; then it is cut where it has to be."""
    from rich.text import Text

    if not console.is_terminal or line.cell_len <= console.width:
        console.print(line, soft_wrap=True)
        return
    body = line[_INDENT:]
    for number, part in enumerate(body.wrap(console, max(1, console.width - _DEEPER))):
        part.rstrip()
        console.print(Text(" " * (_DEEPER if number else _INDENT)) + part, soft_wrap=True)
