"""Lines longer than the terminal is wide."""

from __future__ import annotations

import io

import pytest
from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from skillup.reports.terminal.layout import print_folded

WORDS = "some words that go on and on"


def shown(line: str, width: int = 30, *, terminal: bool = True) -> list[str]:
    stream = io.StringIO()
    console = Console(file=stream, width=width, force_terminal=terminal, color_system=None)
    print_folded(console, Text(line))
    return stream.getvalue().splitlines()


@pytest.mark.parametrize(
    "left",
    ["", "      ", "FAIL   ", "PASS → FAIL  ", "  fail   ", "  new: n/a   ", "      before  "],
)
def test_they_go_on_below_where_they_began(left: str) -> None:
    first, *rest = shown(f"{left}{WORDS}", 30 + len(left) - 9)
    assert first.startswith(f"{left}some")
    assert rest
    assert all(line.startswith(" " * len(left)) for line in rest)
    assert " ".join([first[len(left) :], *(line.strip() for line in rest)]) == WORDS


def test_short_lines_and_logs_stay_as_they_are() -> None:
    assert shown("  fail   short") == ["  fail   short"]
    assert shown(f"  fail   {WORDS}", terminal=False) == [f"  fail   {WORDS}"]
    assert len(shown(WORDS, 10)) == 1  # too narrow for columns: the terminal breaks it itself


def test_styles_are_kept() -> None:
    stream = io.StringIO()
    console = Console(file=stream, width=30, force_terminal=True, color_system="standard")
    print_folded(console, Text("fail   ").append(WORDS, style="red"))
    lines = stream.getvalue().splitlines()
    assert len(lines) > 1
    assert all("\x1b[31m" in line for line in lines)


def test_characters_that_are_two_cells_wide_count_as_two() -> None:
    lines = shown("    " + "漢" * 20, 30)

    assert len(lines) == 2
    assert all(cell_len(line) <= 30 for line in lines)
