"""Consoles, texts and tables: folded on a terminal, one line each in a log."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, TextIO

from rich.console import Console, JustifyMethod
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from skillup.reports.text import plain

if TYPE_CHECKING:
    from skillup.reports.tables import Sheet

Part = str | Text | tuple[str, str]  # A text; a tuple has a style, too. Strings may be anybody's
_LOG_WIDTH = 200
_LOG_TABLE_WIDTH = 10_000
"""Where there is no terminal, a row is one line: log files are searched line by line."""


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
    for title, place in zip(heads or [""] * columns, align or usual, strict=False):
        justify: JustifyMethod = "right" if place == "r" else "left"
        table.add_column(make_text(title), overflow="fold", justify=justify, no_wrap=place != "l")
    for row in rows:
        table.add_row(*map(make_text, row))
    width = console.width if console.is_terminal else _LOG_TABLE_WIDTH
    with console.capture() as printed:
        console.print(Padding(table, (0, 0, 0, indent)), width=width, crop=False)
    lines = printed.get().rstrip("\n").split("\n")
    console.file.writelines(f"{line.rstrip()}\n" for line in lines)


def print_line(console: Console, *parts: Part, style: str = "") -> None:
    """A line; on a terminal folded between words."""
    text = make_text(*parts, style=style)
    if console.color_system is None and not console.is_terminal and "\t" not in text.plain:
        console.file.write(f"{text.plain}\n")  # without rich's slow segments
        console.file.flush()
    else:
        console.print(text, soft_wrap=not console.is_terminal)


def print_whole(console: Console, text: str, style: str = "") -> None:
    """A line that is not folded: it may be copied."""
    console.print(plain(text), style=style, markup=False, soft_wrap=True)


def print_sheet(console: Console, sheet: Sheet) -> None:
    console.print()
    if sheet.title:
        print_line(console, sheet.title, style="bold")
    if sheet.rows:
        print_table(console, sheet.rows, sheet.heads, align=sheet.align, indent=sheet.indent)
    for line in sheet.lines:
        print_line(console, line)
