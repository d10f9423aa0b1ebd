"""Consoles, texts and tables: folded on a terminal, one line each in a log."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, TextIO

from rich.cells import cell_len
from rich.console import Console
from rich.padding import Padding
from rich.segment import Segment, Segments
from rich.table import Table
from rich.text import Text

from skillup.reports.text import plain

if TYPE_CHECKING:
    from skillup.reports.tables import Sheet

Part = str | Text | tuple[str, str]  # A text; a tuple has a style, too. Strings may be anybody's
_LOG_WIDTH = 200
_LOG_TABLE_WIDTH = 10_000
"""Where there is no terminal, a row is one line: log files are searched line by line."""
_NARROWEST = 12
_WORDS = re.compile(r"\S*\s*")
_PIECES = re.compile(r"(?:[^\s/:._-]|(?<=\d)\.(?=\d))*[\s/:._-]*")
"""Of a long name, with what ends each; numbers are whole."""


def make_console(stream: TextIO | None = None) -> Console:
    """A console on `stream` (None: stderr); wide and plain where that is no terminal."""
    file = sys.stderr if stream is None else stream
    # Without `emoji`: of others' texts ``:key:`` and the like are not to become pictures.
    width = None if file.isatty() else _LOG_WIDTH
    return Console(file=file, highlight=False, emoji=False, width=width)


def make_text(*parts: Part, style: str = "") -> Text:
    """The parts as one text, without markup and what would steer a terminal."""
    made = Text(style=style)
    for part in parts:
        if isinstance(part, Text):
            made.append_text(part)
        else:
            text, own = (part, None) if isinstance(part, str) else part
            made.append(plain(text), style=own)
    return made


def print_table(
    console: Console,
    rows: Sequence[Sequence[Part]],
    heads: Sequence[str] = (),
    *,
    align: str = "",
    style: str = "dim",
    indent: int = 0,
) -> None:
    """A table without lines, each row only as long as what stands in it. `align` has a letter for
    each column: `l` at the left and folded, `n` not folded, `r` at the right. By default below
    heads all but the first are numbers, and without heads the first and the last are folded.
    """
    if not rows and not heads:
        return
    columns = len(heads or rows[0])
    usual = "l" + ("r" * (columns - 1) if heads else "n" * (columns - 2) + "l")
    table = Table(
        box=None, pad_edge=False, header_style=style, padding=(0, 2, 0, 0), show_header=any(heads)
    )
    width = console.width if console.is_terminal else _LOG_TABLE_WIDTH
    places, titles = align or usual, [make_text(head) for head in heads or [""] * columns]
    cells = [[make_text(cell) for cell in row] for row in rows]
    columns_of = zip(titles, *cells, strict=True)
    sizes = [[max(map(cell_len, c.plain.split("\n"))) for c in column] for column in columns_of]
    widths = [max(column) for column in sizes]
    least = [_NARROWEST if at == "l" else max(n[1:] or n) for n, at in zip(sizes, places)]  # noqa: B905
    for _ in range(sum(widths) + 2 * (columns - 1) + indent - width):  # the widest yields
        slack = [n for n, low in enumerate(least) if widths[n] > max(low, _NARROWEST // 2)]
        if slack:
            widths[max(slack, key=widths.__getitem__)] -= 1
    for title, place, most in zip(titles, places, widths, strict=True):
        justify, no_wrap = "right" if place == "r" else "left", place != "l"
        head = _in_pieces(title, most)
        table.add_column(head, overflow="fold", justify=justify, no_wrap=no_wrap, max_width=most)  # type: ignore[arg-type]
    for row_cells in cells:
        table.add_row(*map(_in_pieces, row_cells, widths))
    options = console.options.update(width=width)
    for line in console.render_lines(Padding(table, (0, 0, 0, indent)), options, pad=False):
        while line and not line[-1].text.strip():
            line.pop()
        if line:
            text, own, control = line[-1]
            line[-1] = Segment(text.rstrip(), own, control)
        console.print(Segments([*line, Segment.line()]), end="", soft_wrap=True)


def _in_pieces(text: Text, width: int, pieces: re.Pattern[str] = _PIECES) -> Text:
    """Lines of at most `width`, as far as they can begin where a word, or part of a name, does."""
    starts, used = [], 0
    for piece in pieces.finditer(text.plain) if text.cell_len > width else ():
        if used and used + cell_len(piece[0].rstrip()) > width:
            starts.append(piece.start())
            used = 0
        used = cell_len(piece[0].rpartition("\n")[2]) + used * ("\n" not in piece[0])
    lines = text.divide(starts)
    for line in lines:
        line.rstrip()
    return Text("\n").join(lines)


def print_line(console: Console, *parts: Part, style: str = "", whole: bool = False) -> None:
    """A line, on a terminal folded between words, unless it is `whole`: it may be copied."""
    text = make_text(*parts, style=style)
    if console.is_terminal and not whole:
        text = _in_pieces(text, console.width, _WORDS)
    elif console.color_system is None and "\t" not in text.plain:  # without rich's slow segments
        console.file.write(f"{text.plain}\n")
        console.file.flush()
        return
    console.print(text, soft_wrap=True)


def print_sheets(console: Console, sheets: Iterable[Sheet]) -> None:
    for sheet in sheets:
        console.print()
        if sheet.title:
            print_line(console, sheet.title, style="bold")
        if sheet.rows:
            print_table(console, sheet.rows, sheet.heads, align=sheet.align, indent=sheet.indent)
        for line in sheet.lines:
            print_line(console, line)
