"""Lines of marks with numbers: a name, a mark for each run, and what they come to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

_GAP = 2
_INDENT = 2


@dataclass(frozen=True, slots=True)
class Row:
    """One line."""

    name: Text
    marks: Text
    """The newest run at the right."""
    numbers: Sequence[str]
    """One for each header."""


def print_marked(console: Console, headers: Sequence[str], rows: Sequence[Row]) -> None:
    """The rows as a table.

    On a terminal that is too narrow for it, names have lines of their own; and so have marks, which
    go on below, if not even they and the numbers have room beside each other.
    """
    from rich.text import Text

    head = Row(Text(""), Text("runs", style="dim"), headers)
    columns = zip(*(row.numbers for row in (head, *rows)), strict=True)
    widths = [max(map(len, column)) for column in columns]
    name = max(row.name.cell_len for row in (head, *rows))
    marks = max(row.marks.cell_len for row in (head, *rows))
    room = console.width - sum(_GAP + width for width in widths)
    if not console.is_terminal or name + _GAP + marks <= room:
        levels = [[name, marks]]
    elif _INDENT + marks <= room:
        levels = [[name], [marks]]
    else:
        levels = [[name], [marks], [0]]
    for row in (head, *rows):
        cells = [row.name, row.marks, Text("")][: sum(map(len, levels))]
        _print_row(console, levels, cells, _numbers(row, widths, "dim" if row is head else ""))


def _numbers(row: Row, widths: Sequence[int], style: str) -> Text:
    from rich.text import Text

    pairs = zip(row.numbers, widths, strict=True)
    return Text("".join(" " * _GAP + cell.rjust(width) for cell, width in pairs), style=style)


def _print_row(
    console: Console, levels: Sequence[Sequence[int]], cells: Sequence[Text], numbers: Text
) -> None:
    """Each level is a line of cells so wide; the numbers are in the last."""
    from rich.text import Text

    left = list(cells)
    for depth, widths in enumerate(levels):
        line = Text(" " * _INDENT if depth else "")
        for place, width in enumerate(widths):
            cell = left.pop(0)
            line += Text(" " * _GAP if place else "") + cell
            line += Text(" " * (width - cell.cell_len))
        if depth == len(levels) - 1:
            line += numbers
        line.rstrip()
        if not line.plain.strip():
            continue
        _print_wide(console, line, _INDENT if depth else 0)


def _print_wide(console: Console, line: Text, indent: int) -> None:
    """A long line of marks, or a very long name, goes on below itself."""
    from rich.text import Text

    room = max(1, console.width - indent)
    if not console.is_terminal or line.cell_len <= console.width:
        console.print(line, soft_wrap=True)
        return
    for part in line[indent:].wrap(console, room):
        part.rstrip()
        console.print(Text(" " * indent) + part, soft_wrap=True)
