"""What people read of a comparison."""

from __future__ import annotations

import re
from dataclasses import replace
from io import StringIO

import pytest
from rich.console import Console

from skillup.history.comparison import compare_runs
from skillup.history.gates import check_gates, gates_by_suite
from skillup.history.runs import CaseKey
from skillup.reports.comparison import averages
from skillup.reports.terminal.comparison import print_comparison
from skillup.reports.terminal.layout import make_console
from tests.support.outcomes import a_key, a_run


def said(
    a: dict[str | CaseKey, str], b: dict[str | CaseKey, str], cost: tuple[float, float] = (0.1, 0.1)
) -> str:
    """The comparison of two runs as it is printed where there is no terminal."""
    earlier, later = a_run("a", a, cost=cost[0]), a_run("b", b, cost=cost[1])
    comparison = compare_runs(earlier, later, 0.95)
    gates = check_gates(comparison, gates_by_suite(later, {"max_new_failures": 0}))
    stream = StringIO()
    print_comparison(comparison, gates, make_console(stream))
    return stream.getvalue()


@pytest.mark.parametrize(
    ("a", "b", "sure"),
    [
        ("pp", "pf", "2 trials each: cannot tell"),
        ("pp", "ff", "2 trials each: too few to be sure"),
        ("p", "ff", "1 and 2 trials: too few to be sure"),
        ("pppp", "ppff", "4 trials each, p 0.214: may be chance"),
        ("pppp", "ffff", "surely (p 0.0143)"),
    ],
)
def test_each_change_says_how_sure_it_is(a: str, b: str, sure: str) -> None:
    assert sure in said({"case": a}, {"case": b})


def test_a_loss_over_all_cases_is_told_where_no_single_one_is_sure() -> None:
    before: dict[str | CaseKey, str] = {f"case-{n}": "ppp" for n in range(9)}
    text = said(before, dict.fromkeys(before, "ppf"))
    assert "differ, cannot tell (9)" in text
    assert "lower in 9, higher in 0 of 9 cases; all together more than chance, p 0.00391" in text
    assert "gate  max_new_failures 0  met  0 newly failing" in text


def test_what_was_not_run_has_lines_of_its_own() -> None:
    text = said({"x": "ppp", "y": "ppp"}, {"x": "eee", "y": "ppe"})
    assert "x  3/3 → error  because of e" in text
    assert "newly failing" not in text.partition("gate")[0]
    rows = [line.split() for line in text.splitlines()]
    assert ["trials", "not", "run", "0", "4", "+4"] in rows
    assert ["cases", "not", "run", "0", "1", "+1"] in rows


def test_an_engine_that_only_one_of_them_has_is_not_counted_with_the_rest() -> None:
    other = a_key("x", engine="other")
    text = said({"x": "ppp", other: "ffe"}, {"x": "ppp"})
    rows = [" ".join(line.split()) for line in text.splitlines()]
    assert "trials passed in 1 case of both 3/3 3/3" in rows
    assert "trials passed in 1 case of A alone 0/2 –" in rows
    assert "trials not run in 1 case of A alone 1 –" in rows
    assert "cases not run" not in text


def test_a_baseline_that_fails_as_ever_is_one_line() -> None:
    bare: dict[str | CaseKey, str] = {a_key(n, variant="without_skill"): "f" for n in "xyz"}
    text = said({"x": "p", **bare}, {"x": "p", **bare})
    assert "still failing" not in text
    assert "without the skill, 3 cases passed as often as before, and not always" in text
    text = said({"x": "f", **bare}, {"x": "f", **bare})
    assert "still failing (1)" in text


def test_the_first_line_is_what_it_all_comes_to() -> None:
    assert said({"x": "pppp"}, {"x": "ffff"}).startswith("1 case got worse surely (x); ")


def test_what_was_not_run_does_not_bury_what_was_lost() -> None:
    before: dict[str | CaseKey, str] = {f"case-{n}": "n" for n in range(60)}
    text = said({**before, "was-held": "p"}, {**before, "was-held": "n"})
    rows = text.partition("no verdict to compare (61)\n")[2].splitlines()
    assert rows[0].split()[0] == "was-held"
    assert rows[40] == "  … and 21 more; --json has all"
    assert rows[41] == ""


def on_terminal(
    width: int, a: dict[str | CaseKey, str], b: dict[str | CaseKey, str], reason: str = "no"
) -> list[str]:
    """The lines of the comparison on a terminal that is so wide."""
    earlier, later = a_run("a", a), a_run("b", b)
    trials = [
        replace(trial, reason="" if trial.status == "PASS" else reason) for trial in later.trials
    ]
    comparison = compare_runs(earlier, replace(later, trials=tuple(trials)), 0.95)
    stream = StringIO()
    console = Console(file=stream, width=width, force_terminal=True, no_color=True, highlight=False)
    print_comparison(comparison, [], console)
    return re.sub(r"\x1b\[[0-9;]*m", "", stream.getvalue()).splitlines()


@pytest.mark.parametrize("width", [50, 80, 120])
def test_long_lines_are_folded_at_words(width: int) -> None:
    name = "short"
    words = "they are still there, all three of them, `gone` is nowhere; nothing was removed"
    cases: dict[str | CaseKey, str] = {name: "p" * 10, "c2": "p" * 10}
    lines = on_terminal(width, cases, {name: "f" * 10, "c2": "pf" * 5}, reason=words)
    assert max(map(len, lines)) <= width
    text = " ".join(" ".join(lines).split())
    assert f"{name} 10/10 → 0/10 surely (p < 0.0001); {words}" in text
    assert "(McNemar's exact test, for several trials)" in text


@pytest.mark.parametrize(
    ("b", "told"),
    [(0.15, "a trial cost $0.10 in A, $0.15 in B (+50%)"), (None, None)],
)
def test_cost_and_time_are_a_sentence_each_where_both_runs_tell_them(
    b: float | None, told: str | None
) -> None:
    a = a_run("a", {"x": "p"}, cost=0.10)
    sentences = list(averages(compare_runs(a, a_run("b", {"x": "p"}, cost=b), 0.95)))
    assert sentences[:-1] == ([told] if told else [])
    assert sentences[-1].startswith("a trial took ")


def test_names_cannot_steer_the_terminal() -> None:
    assert "\x1b" not in said({"\x1b[31mx": "p"}, {"\x1b[31mx": "f"})
