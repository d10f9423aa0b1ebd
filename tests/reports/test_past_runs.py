"""What people and programs get of two runs side by side, and of many past runs."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from io import StringIO

import pytest
from rich.console import Console

from skillup.history.comparison import Comparison, check_gates, gates_by_suite
from skillup.history.runs import About, CaseKey, SeriesFilter, histories
from skillup.reports.past_runs import (
    changed_cases,
    comparison_json,
    in_a_sentence,
    print_comparison,
    print_trends,
    statements,
)
from tests.support.outcomes import Cases, a_key, a_run

Cost = float | None
OF_ONE = "of 1 case with a verdict in both runs"
BARE: dict[str | CaseKey, str] = {a_key(name, variant="without_skill"): "f" for name in "xyz"}


def compared(a: Cases, b: Cases, cost: tuple[Cost, Cost] = (0.1, 0.1)) -> Comparison:
    return Comparison(a_run("a", a, cost=cost[0]), a_run("b", b, cost=cost[1]), 0.95)


def sentence(a: Cases, b: Cases, cost: tuple[Cost, Cost] = (None, None)) -> str:
    return in_a_sentence(compared(a, b, cost))


def printed(comparison: Comparison) -> str:
    """In a log, with a gate."""
    stream = StringIO()
    gates = check_gates(comparison, gates_by_suite(comparison.b, {"max_new_failures": 0}))
    print_comparison(comparison, gates, Console(file=stream, width=200, highlight=False))
    return stream.getvalue()


@pytest.mark.parametrize(
    ("a", "b", "start"),
    [
        ("pppp", "ffff", "1 case got worse surely (x); "),
        ("p", "f", "1 case got worse, perhaps by chance (x); "),
        (
            "pppp",
            "ppff",
            f"No case surely got worse, {OF_ONE}; 1 case passed less often, perhaps by chance (x)",
        ),
        ("ffff", "pppp", f"No case surely got worse, {OF_ONE}; 1 case got better (x); "),
        ("ppp", "eee", "Cannot tell what got worse: no case has a verdict in both runs; "),
    ],
)
def test_the_sentence_says_no_more_than_is_sure(a: str, b: str, start: str) -> None:
    text = sentence({"x": a}, {"x": b})
    assert text.startswith(start)
    assert "; what the agent cost in B is not known; " in text
    assert printed(compared({"x": a}, {"x": b}, (None, None))).startswith(text)


OTHER: str | CaseKey = a_key("x", engine="other")


@pytest.mark.parametrize(
    ("a", "b", "part"),
    [
        (
            {"x": "pppp", OTHER: "p"},
            {"x": "ffff", OTHER: "f"},
            "surely (x on scripted); 1 case got worse, perhaps by chance (x on other); ",
        ),
        ({"x": "p", **BARE}, {"x": "p", **BARE}, "; all of B was run."),
        ({"x": "p", **BARE}, {"x": "p", **dict.fromkeys(BARE, "en")}, "; 6 trials were not run."),
        (
            {"x": "p", "y": "p", "z": "e", "w": "p"},
            {"x": "p", "y": "s", "z": "f", "new": "p"},
            "; 2 cases have a verdict only in B (1 failed); 1 trial was skipped.",
        ),
        # A baseline that fails is nothing that got worse.
        ({"x": "p", **dict.fromkeys(BARE, "p")}, {"x": "p", **BARE}, f"worse, {OF_ONE}; "),
    ],
)
def test_the_sentence_names_engines_and_what_was_not_run(a: Cases, b: Cases, part: str) -> None:
    assert part in sentence(a, b)


def test_many_small_losses_count_together() -> None:
    before: Cases = {f"case-{n}": "ppp" for n in range(9)}
    both = compared(before, dict.fromkeys(before, "ppf"))
    text = printed(both)
    assert "all together passed less often by more than chance; " in text
    assert "differ, perhaps by chance (9)" in text
    assert "lower in 9, higher in 0 of 9 cases; more than chance, p 0.00391" in text
    assert "gate  max_new_failures 0  passed  0 newly failing" in text


def test_a_lower_score_under_the_same_verdict_is_something() -> None:
    a, b = a_run("a", {"x": "p"}), a_run("b", {"x": "p"})
    b = replace(b, trials=tuple(replace(trial, score=0.7) for trial in b.trials))
    text = printed(Comparison(a, b, 0.95))
    assert "another score, the same verdict (1)\n  x  1/1 → 1/1  score 1.00 → 0.70\n" in text


@pytest.mark.parametrize(
    ("cost", "part", "average"),
    [
        (
            (1.0, 1.25),
            "; the agent cost $2.50 in B, +25% a trial; ",
            ["a trial cost $1.00 in A, $1.25 in B (+25%)"],
        ),
        ((None, 1.25), "; the agent cost $2.50 in B; ", []),
        ((1.0, None), "; what the agent cost in B is not known; ", []),
    ],
)
def test_the_cost_or_that_it_is_not_known(
    cost: tuple[Cost, Cost], part: str, average: list[str]
) -> None:
    assert part in sentence({"x": "pp"}, {"x": "pp"}, cost)
    _, _, *costs, time = statements(compared({"x": "pp"}, {"x": "pp"}, cost))
    assert costs == average
    assert time.startswith("a trial took ")


def test_cases_that_were_edited_are_named() -> None:
    digests = {"demo/x": "1", "demo/y": "1"}
    a = replace(a_run("a", {"x": "p", "y": "p", "z": "p"}), about=About(cases=digests))
    b = replace(
        a_run("b", {"x": "f", "y": "p", "z": "p"}), about=About(cases={**digests, "demo/x": "2"})
    )
    found = Comparison(a, b, 0.95)
    assert "\n1 case was edited between the two runs: x\n" in printed(found)
    data = json.loads(comparison_json(found, []))
    assert data["edited_cases"] == [{"suite": "demo", "case_id": "x"}]
    assert data["summary"] == in_a_sentence(found)
    assert changed_cases([]) == ""


@pytest.mark.parametrize(
    ("a", "b", "sure"),
    [
        ("pp", "ff", "p 0.167: may be chance"),
        ("pppp", "ppff", "p 0.214: may be chance"),
        ("pppp", "ffff", "surely (p 0.0143)"),
    ],
)
def test_each_change_says_how_sure_it_is(a: str, b: str, sure: str) -> None:
    assert sure in printed(compared({"case": a}, {"case": b}))


def test_what_was_not_run_has_a_row_and_a_baseline_that_fails_as_ever_has_none() -> None:
    text = printed(compared({"x": "ppp", "y": "f", **BARE}, {"x": "eee", "y": "f", **BARE}))
    assert "x  3/3 → error  because of e" in text
    assert "newly failing" not in text.partition("gate")[0]
    assert "still failing (1)" in text


def test_what_was_not_run_does_not_bury_what_was_lost() -> None:
    before: Cases = {f"case-{n}": "n" for n in range(60)}
    text = printed(compared({**before, "ran": "p"}, {**before, "ran": "n"}))
    rows = text.partition("no verdict to compare (61)\n")[2].splitlines()
    assert rows[0].split()[0] == "ran"
    assert rows[40] == "  … and 21 more; --json has all"
    assert rows[41] == ""


def test_names_cannot_steer_the_terminal() -> None:
    assert "\x1b" not in printed(compared({"\x1b[31mx": "p"}, {"\x1b[31mx": "f"}))


# Many runs.


def trends(nights: list[Cases], width: int | None = None, *, everything: bool = False) -> str:
    """The history as it is printed, on a terminal so wide (None: in a log)."""
    rows = [a_run(f"{number:03}", cases) for number, cases in enumerate(nights, start=1)]
    stream = StringIO()
    console = Console(
        file=stream,
        width=width or 200,
        force_terminal=width is not None,
        no_color=True,
        highlight=False,
    )
    print_trends(histories(rows, SeriesFilter(), 60), console, everything=everything)
    return re.sub(r"\x1b\[[0-9;]*m", "", stream.getvalue())


def test_a_case_of_several_trials_says_since_when_and_when_it_last_passed() -> None:
    text = trends([{"a": night} for night in ("ppp", "ppf", "fff", "pff")])
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
    text = trends([{"a": night} for night in ("ppp", "ppp", "fff", "fff")])
    assert "a: fell at 003 (2026-01-01 00:00): 6/6 before, 0/6 since (p 0.00325)\n" in text


@pytest.mark.parametrize("width", [60, 120])
def test_numbers_are_whole_and_nothing_is_wider_than_the_terminal(width: int) -> None:
    text = trends([{"a": "p", "deletes-all-logs-after-asking": "pf"}] * 25, width)
    assert max(map(len, text.splitlines())) <= width
    assert text.count("✓") == 26
    assert "25/50" in text


def test_of_very_many_cases_those_that_always_passed_are_only_counted() -> None:
    steady: Cases = {f"steady-{number:03}": "p" for number in range(100)}
    nights: list[Cases] = [{**steady, "zzz": "p"}, {**steady, "zzz": "f"}]
    lines = trends(nights).splitlines()
    assert lines[3].split()[:2] == ["zzz", "✓✗"]
    assert "… and 100 more that always passed; --all shows them" in lines
    assert trends(nights, everything=True).count("steady-") == 100
