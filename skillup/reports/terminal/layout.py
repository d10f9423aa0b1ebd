"""Consoles, tables and long lines: folded on a terminal, one line each in a log."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, TextIO

from rich.console import Console

if TYPE_CHECKING:
    from rich.table import Table
    from rich.text import Text

_LOG_WIDTH = 200
_LOG_TABLE_WIDTH = 10_000
"""Where there is no terminal, a row is one line: log files are searched line by line."""
_LEAST_ROOM = 20
_HANGING = 2


def make_console(stream: TextIO | None = None) -> Console:
    """A console on `stream` (None: stderr); wide and plain where that is no terminal."""
    file = sys.stderr if stream is None else stream
    # Without `emoji`: of others' texts ``:key:`` and the like are not to become pictures.
    width = None if file.isatty() else _LOG_WIDTH
    return Console(file=file, highlight=False, emoji=False, width=width)


def make_table(*heads: str, style: str = "dim") -> Table:
    """A table without lines: names at the left, which may be folded, numbers at the right."""
    from rich.table import Table
    from rich.text import Text

    table = Table(
        box=None, pad_edge=False, header_style=style, padding=(0, 2, 0, 0), show_header=any(heads)
    )
    for place, head in enumerate(heads):
        table.add_column(
            Text(head),
            overflow="fold",
            justify="right" if place else "left",
            no_wrap=place > 0,
        )
    return table


def print_table(console: Console, table: Table, *, indent: int = 0) -> None:
    """The table, each line only as long as what stands in it."""
    from rich.padding import Padding
    from rich.segment import Segment, Segments

    width = console.width if console.is_terminal else _LOG_TABLE_WIDTH
    options = console.options.update(width=width)
    for line in console.render_lines(Padding(table, (0, 0, 0, indent)), options, pad=False):
        while line and not line[-1].text.strip():
            line.pop()
        if line:
            text, style, control = line[-1]
            line[-1] = Segment(text.rstrip(), style, control)
        console.print(Segments([*line, Segment.line()]), end="", soft_wrap=True)


def print_aligned(console: Console, rows: Iterable[Sequence[Text]]) -> None:
    """Rows whose cells stand below each other; names and the last cell are folded at words."""
    from rich.table import Table

    rows = list(rows)
    table = Table.grid(padding=(0, 2, 0, 0))
    for place in range(max(map(len, rows), default=0)):
        table.add_column(overflow="fold", no_wrap=0 < place < len(rows[0]) - 1)
    for row in rows:
        table.add_row(*row)
    print_table(console, table, indent=2)


def print_folded(console: Console, line: Text, indent: int | None = None) -> None:
    """A line; what goes on below is indented, as the line itself is if `indent` is None."""
    from rich.text import Text

    for part in folded(console, line, indent):
        console.print(part if isinstance(part, Text) else str(part), soft_wrap=True)


def print_sentence(console: Console, line: Text) -> None:
    """A line that goes on below a little to the right."""
    print_folded(console, line, _HANGING)


def folded(console: Console, line: Text, indent: int | None = None) -> list[Text]:
    """The lines that :func:`print_folded` prints."""
    from rich.text import Text

    start = len(line.plain) - len(line.plain.lstrip(" "))
    below = start if indent is None else indent
    room = console.width - max(start, below)
    if not console.is_terminal or line.cell_len <= console.width or room < _LEAST_ROOM:
        return [line]
    parts = line[start:].wrap(console, room)
    found = []
    for number, part in enumerate(parts):
        part.rstrip()
        found.append(Text(" " * (below if number else start)) + part)
    return found
