"""What people read of past runs."""

from __future__ import annotations

import re
from dataclasses import replace
from io import StringIO

import pytest
from rich.console import Console

from skillup.history.series import SeriesFilter, histories
from skillup.reports.terminal.history import print_trends
from tests.support.outcomes import Cases, a_run


def printed(nights: list[Cases], width: int | None = None, *, everything: bool = False) -> str:
    """The history as it is printed, on a terminal so wide (None: in a log)."""
    rows = [a_run(f"{number:03}", cases) for number, cases in enumerate(nights, start=1)]
    stream = StringIO()
    console = Console(
        file=stream, width=width or 200, force_terminal=width is not None, no_color=True,
        highlight=False,
    )  # fmt: skip
    print_trends(histories(rows, SeriesFilter(), 60), console, everything=everything)
    return re.sub(r"\x1b\[[0-9;]*m", "", stream.getvalue())


def test_a_case_of_several_trials_says_since_when_and_when_it_last_passed() -> None:
    text = printed([{"a": night} for night in ("ppp", "ppf", "fff", "pff")])
    since = "a: not always passing since 002 (2026-01-01 00:00), 3 runs; "
    assert f"{since}last passed in 001 (2026-01-01 00:00)\n" in text


def test_the_line_of_all_cases_has_what_they_cost() -> None:
    cheap, dear = a_run("1", {"a": "pp"}, cost=0.10), a_run("1", {"b": "p"}, cost=0.40)
    rows = [replace(cheap, trials=(*cheap.trials, *dear.trials))]
    stream = StringIO()
    print_trends(histories(rows, SeriesFilter(), 60), Console(file=stream, width=200))
    line = stream.getvalue().splitlines()[2]
    assert line.split()[:4] == ["(all)", "✓", "3/3", "100%"]
    assert line.endswith("$0.20")


def test_a_pass_rate_that_surely_fell_says_where_and_from_what() -> None:
    text = printed([{"a": night} for night in ("ppp", "ppp", "fff", "fff")])
    assert "a: fell at 003 (2026-01-01 00:00): 6/6 before, 0/6 since (p 0.00325)\n" in text


@pytest.mark.parametrize("width", [60, 120])
def test_numbers_are_whole_and_nothing_is_wider_than_the_terminal(width: int) -> None:
    text = printed([{"a": "p", "deletes-all-logs-after-asking": "pf"}] * 25, width)
    assert max(map(len, text.splitlines())) <= width
    assert text.count("✓") == 26
    assert "25/50" in text


def test_of_very_many_cases_those_that_always_passed_are_only_counted() -> None:
    steady: Cases = {f"steady-{number:03}": "p" for number in range(100)}
    nights: list[Cases] = [{**steady, "zzz": "p"}, {**steady, "zzz": "f"}]
    lines = printed(nights).splitlines()
    assert lines[3].split()[:2] == ["zzz", "✓✗"]
    assert "… and 100 more that always passed; --all shows them" in lines
    assert printed(nights, everything=True).count("steady-") == 100
