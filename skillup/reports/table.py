"""Tables without the blanks that fill up their last column."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table


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
