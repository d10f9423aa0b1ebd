"""Rows whose cells stand below each other; what is longer than the terminal is wide goes on below.

A table of rich would make every column narrower, and break names and numbers in two.
"""

from __future__ import annotations

import re
import sys
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Any, TextIO

from rich.console import Console, ConsoleDimensions

if TYPE_CHECKING:
    from rich.table import Table
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


# Lines that are longer than the terminal is wide go on below where they began.

_VERDICT = r"(?:PASS|FAIL|ERROR|SKIP|pass|fail|error|n/a)"
_LEFT = re.compile(rf" *(?:(?:before|after|(?:{_VERDICT} → |new: |gone: )?{_VERDICT}) +)?")
"""What stands to the left of a line's own text: spaces, and perhaps a verdict."""
_NARROWEST = 20


def print_folded(console: Console, line: Text) -> None:
    """As it is where there is no terminal: log files are searched line by line."""
    for part in folded(console, line):
        console.print(part, soft_wrap=True)


def folded(console: Console, line: Text) -> Iterator[Text]:
    """The lines that :func:`print_folded` prints."""
    from rich.text import Text

    indent = len(_left_of(line))
    room = console.width - indent
    if not console.is_terminal or line.cell_len <= console.width or room < _NARROWEST:
        yield line
        return
    head, body = line[:indent], line[indent:]
    for number, part in enumerate(body.wrap(console, room)):
        part.rstrip()
        start = head if number == 0 else Text(" " * indent)
        yield start + part


def _left_of(line: Text) -> str:
    found = _LEFT.match(line.plain)
    return found[0] if found is not None else ""


# Lines of marks with numbers: a name, a mark for each run, and what they come to.


@dataclass(frozen=True, slots=True)
class MarkedRow:
    """One line."""

    name: Text
    marks: Text
    """The newest run at the right."""
    numbers: Sequence[str]
    """One for each header."""


def print_marked(console: Console, headers: Sequence[str], rows: Sequence[MarkedRow]) -> None:
    """The rows as a table.

    On a terminal that is too narrow for it, names have lines of their own; and so have marks, which
    go on below, if not even they and the numbers have room beside each other.
    """
    from rich.text import Text

    head = MarkedRow(Text(""), Text("runs", style="dim"), headers)
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
        _print_row_marks(
            console, levels, cells, _numbers(row, widths, "dim" if row is head else "")
        )


def _numbers(row: MarkedRow, widths: Sequence[int], style: str) -> Text:
    from rich.text import Text

    pairs = zip(row.numbers, widths, strict=True)
    return Text("".join(" " * _GAP + cell.rjust(width) for cell, width in pairs), style=style)


def _print_row_marks(
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
        _print_wide_marks(console, line, _INDENT if depth else 0)


def _print_wide_marks(console: Console, line: Text, indent: int) -> None:
    """A long line of marks, or a very long name, goes on below itself."""
    from rich.text import Text

    room = max(1, console.width - indent)
    if not console.is_terminal or line.cell_len <= console.width:
        console.print(line, soft_wrap=True)
        return
    for part in line[indent:].wrap(console, room):
        part.rstrip()
        console.print(Text(" " * indent) + part, soft_wrap=True)


# Tables without the blanks that fill up their last column.


def print_table(console: Console, table: Table, *, indent: int = 0) -> None:
    """The table, each line only as long as what stands in it."""
    from rich.padding import Padding
    from rich.segment import Segment, Segments

    for line in console.render_lines(Padding(table, (0, 0, 0, indent)), pad=False):
        while line and not line[-1].text.strip():
            line.pop()
        if line:
            text, style, control = line[-1]
            line[-1] = Segment(text.rstrip(), style, control)
        console.print(Segments([*line, Segment.line()]), end="")


# A console for what people read: on a terminal, or plain and wide where there is none.

_WIDE = 200
"""Columns to assume where the output is no terminal, so that nothing is folded in log files."""


def make_console(stream: TextIO | None = None) -> Console:
    """A console on `stream`; wide and plain where that is no terminal.

    None: on stderr.
    """
    file = sys.stderr if stream is None else stream
    # Without `emoji`: of others' texts ``:key:`` and the like are not to become pictures.
    return OrderlyConsole(
        file=file, highlight=False, emoji=False, width=None if file.isatty() else _WIDE
    )


# A console on which one thread prints at a time, from where it looks to where it has written.


class OrderlyConsole(Console):
    """As rich's. Who needs another lock, too, takes it inside of ``with console:``."""

    def __init__(self, **more: Any) -> None:
        self._turn = threading.RLock()
        self._depth = 0
        self._size_now: ConsoleDimensions | None = None
        super().__init__(**more)

    @property
    def size(self) -> ConsoleDimensions:
        """The terminal's size: while something is printed, that when it began."""
        return self._size_now or super().size

    @size.setter
    def size(self, size: tuple[int, int]) -> None:
        self.width, self.height = size

    def __enter__(self) -> OrderlyConsole:
        self._turn.acquire()
        self._depth += 1
        if self._depth == 1:
            self._size_now = super().size
        super().__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        try:
            super().__exit__(kind, error, traceback)
        finally:
            self._depth -= 1
            if self._depth == 0:
                self._size_now = None
            self._turn.release()
