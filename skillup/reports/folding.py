"""Lines that are longer than the terminal is wide go on below where they began."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

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
