"""An analysis on a terminal, or in a log."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from skillup.reports.analysis.sheet import Cell, Sheet
from skillup.reports.analysis.tables import sheets_of
from skillup.reports.terminal.layout import print_folded, print_table
from skillup.reports.text import plain
from skillup.schema.analysis import Analysis

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text


_GAP = 2
_WIDEST_NAME = 44
_NARROWEST_NAME = 16
_SIMPLER = str.maketrans({"✓": "+", "✗": "x", "→": "->", "–": "-", "…": "..."})


def print_analysis(analysis: Analysis | None, console: Console) -> None:
    """A blank line and a table for each thing there is to say; nothing if there is none."""
    from rich.text import Text

    for sheet in sheets_of(analysis) if analysis is not None else ():
        console.print()
        if sheet.title:
            print_folded(console, Text(plain(sheet.title), style="bold"))
        for number, table in enumerate(_tables(sheet, console)):
            if number > 0:
                console.print()
            print_table(console, table)
        for line in sheet.lines:
            print_folded(console, _text(line, console))


def _tables(sheet: Sheet, console: Console) -> Iterator[Table]:
    """The table; in several parts, each with the names of its rows, where it is too wide."""
    from rich.cells import cell_len
    from rich.table import Table
    from rich.text import Text

    if not sheet.rows:
        return
    widths = [
        max(map(cell_len, [head, *(plain(row[place].text) for row in sheet.rows)]))
        for place, head in enumerate(sheet.heads)
    ]
    name = _name_width(widths, console.width)
    for part in _parts(widths[1:], console.width - name):
        table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, _GAP, 0, 0))
        first = Text(plain(sheet.heads[0]))
        table.add_column(first, overflow="fold", min_width=min(name, widths[0]))
        for place in part:
            head = Text(plain(sheet.heads[place + 1]))
            table.add_column(head, justify="right", no_wrap=True)
        for row in sheet.rows:
            table.add_row(*(_text(row[at], console) for at in (0, *(place + 1 for place in part))))
        yield table


def _name_width(widths: Sequence[int], room: int) -> int:
    """All of the longest name if everything fits so; else a share of the room."""
    rest = sum(width + _GAP for width in widths[1:])
    if widths[0] + rest <= room:
        return widths[0]
    return min(widths[0], max(_NARROWEST_NAME, min(_WIDEST_NAME, max(room - rest, room // 3))))


def _parts(widths: Sequence[int], room: int) -> Iterator[list[int]]:
    """Places of columns that fit beside each other, at least one at a time."""
    part: list[int] = []
    taken = 0
    for place, width in enumerate(widths):
        if part and taken + width + _GAP > room:
            yield part
            part, taken = [], 0
        part.append(place)
        taken += width + _GAP
    yield part


def _text(cell: Cell, console: Console) -> Text:
    from rich.text import Text

    text = plain(cell.text)
    try:
        text.encode(console.encoding)
    except UnicodeEncodeError:
        text = text.translate(_SIMPLER)
    return Text(text, style=cell.style)


# An analysis in GitHub's Markdown.

_LONGEST_LINE = 2000


def markdown_analysis(
    analysis: Analysis | None, escape: Callable[[str, int], str]
) -> Iterator[str]:
    """Lines; `escape` makes text of others harmless, and shortens it to so many characters."""
    for sheet in sheets_of(analysis) if analysis is not None else ():
        if sheet.title:
            yield ""
            yield f"## {escape(sheet.title, 200)}"
        if sheet.rows:
            yield ""
            yield _row([escape(head, 200) for head in sheet.heads])
            yield "|---|" + "---:|" * (len(sheet.heads) - 1)
            for row in sheet.rows:
                yield _row([escape(cell.text, 200) for cell in row])
        for number, line in enumerate(sheet.lines):
            if number == 0:
                yield ""
            yield f"- {escape(line.text, _LONGEST_LINE)}"


def _row(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"
