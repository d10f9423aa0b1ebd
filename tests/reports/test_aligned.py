"""Rows whose cells stand below each other."""

from __future__ import annotations

import io

import pytest
from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from skillup.reports.terminal.layout import print_aligned

ROWS = [("case", "rate", "note"), ("a-name-without-blanks", "50%", "words that go on and on")]


def shown(width: int, *, terminal: bool = True) -> list[str]:
    stream = io.StringIO()
    console = Console(file=stream, width=width, force_terminal=terminal, color_system=None)
    print_aligned(console, [[Text(cell) for cell in row] for row in ROWS])
    return stream.getvalue().splitlines()


def test_cells_stand_below_each_other() -> None:
    assert shown(100) == [
        "  case                   rate  note",
        "  a-name-without-blanks  50%   words that go on and on",
    ]


@pytest.mark.parametrize("width", [1, 6, 20, 35])
def test_a_narrow_terminal_loses_nothing(width: int) -> None:
    lines = shown(width)

    assert "".join("".join(lines).split()) == "".join("".join(row) for row in ROWS).replace(" ", "")


def test_lines_are_no_wider_than_the_terminal_as_long_as_words_have_room() -> None:
    assert max(map(cell_len, shown(40))) <= 40


def test_where_there_is_no_terminal_a_row_is_a_line() -> None:
    assert len(shown(20, terminal=False)) == 2
