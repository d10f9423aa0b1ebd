"""What people and programs get of a run beside its reference, and of many past runs."""

from __future__ import annotations

import re
from dataclasses import replace
from io import StringIO

import jsonschema
import pytest
from rich.console import Console

from skillup.history.comparison import Comparison
from skillup.history.counts import Measured
from skillup.history.gates import check_gates, gates_by_suite
from skillup.history.regressions import Statement
from skillup.history.runs import About
from skillup.history.trends import histories
from skillup.reports.markdown import comparison_markdown
from skillup.reports.past_runs import (
    comparison_data,
    comparison_sheets,
    headline,
    how_sure,
    in_a_sentence,
    print_trends,
)
from skillup.reports.terminal.layout import print_sheets
from skillup.schema import json_schema
from tests.support.outcomes import Cases, a_key, a_run, compared_with

STEADY = "p" * 20


def compared(a: Cases, b: Cases, cost: float | None = None) -> Comparison:
    return compared_with([a_run("a", a, cost=cost)], a_run("b", b, cost=cost and 1.25 * cost))


def printed(comparison: Comparison) -> str:
    """In a log, with its gates."""
    stream = StringIO()
    gates = check_gates(comparison, gates_by_suite(comparison.b, {}))
    console = Console(file=stream, width=200, highlight=False)
    print_sheets(console, comparison_sheets(comparison, gates))
    return stream.getvalue()


@pytest.mark.parametrize(
    ("a", "b", "text"),
    [
        ({"x": STEADY}, {"x": "fffff"}, "1 case regressed (x); what the agent cost is not known; "),
        (
            {"x": "ppp"},
            {"x": "ppf"},
            "with a verdict in both; 1 case with fewer passes, not significant (x); ",
        ),
        ({"x": "ff"}, {"x": "pp"}, "No case regressed, of 1 case with a verdict in both; what "),
        ({"x": "p"}, {"x": "e"}, "Cannot tell what got worse: no case has a verdict in both; "),
        ({"x": "p"}, {"x": "psen"}, "; 1 trial met an error; 1 trial not run; 1 trial sk"),
        ({"x": "p"}, {"x": "p"}, "; all of it was run."),
        (
            {"x": STEADY, a_key("x", engine="other"): STEADY},
            {"x": "fffff", a_key("x", engine="other"): "ppppp"},
            "1 case regressed (x on scripted); ",
        ),
        # A baseline that fails is nothing that got worse.
        (
            {"x": STEADY, a_key("x", variant="without_skill"): STEADY},
            {"x": "pp", a_key("x", variant="without_skill"): "ff"},
            "No case regressed, of 1 case with a verdict in both; what ",
        ),
    ],
)
def test_the_sentence_says_no_more_than_is_sure(a: Cases, b: Cases, text: str) -> None:
    assert text in in_a_sentence(compared(a, b))


def test_a_first_night_and_what_it_cost() -> None:
    first = compared_with([], a_run("b", {"x": "ppf"}, cost=0.5))
    assert "\n  x  only in B  – → 2/3  because of f\n" in printed(first)
    assert in_a_sentence(first) == (
        "Nothing to compare with yet; 2 of 3 trials passed; the agent cost $1.50; "
        "all of it was run."
    )
    assert "What changed" not in printed(first)
    assert "; the agent cost $0.12, +25% a trial; " in in_a_sentence(
        compared({"x": "p"}, {"x": "p"}, 0.1)
    )


def a_statement(kind: str, before: Measured, after: Measured, **more: object) -> Statement:
    own = {"suite": "demo", "key": a_key("x"), "p": 0.0004, "significant": True, **more}
    return Statement(kind=kind, before=before, after=after, **own)  # type: ignore[arg-type]


PASSES = Measured(58 / 60, 60, 58), Measured(1 / 3, 3, 1)


@pytest.mark.parametrize(
    ("one", "alone", "beside"),
    [
        (a_statement("fewer_passes", *PASSES), "regressed: 58/60 → 1/3 (p 0.0004)", "p 0.0004"),
        (
            a_statement("fewer_passes", *PASSES, significant=False, p=0.3),
            "fewer passes, not significant: 58/60 → 1/3 (p 0.3)",
            "not significant, p 0.3",
        ),
        (
            a_statement("fewer_passes", *PASSES, since="monday", nights=2),
            "regressed: 58/60 → 1/3 in 2 nights (since monday, p 0.0004)",
            "1/3 in 2 nights, since monday, p 0.0004",
        ),
        (
            a_statement("slower", Measured(2000, 60), Measured(6000, 3)),
            "slower: 2.0 s → 6.0 s, +200% (p 0.0004)",
            "slower: 2.0 s → 6.0 s, +200% (p 0.0004)",
        ),
        (
            a_statement("more_errors", Measured(0, 60), Measured(2 / 3, 3, 2)),
            "with more errors: 0/60 → 2/3 (p 0.0004)",
            "with more errors: 0/60 → 2/3 (p 0.0004)",
        ),
    ],
)
def test_each_statement_has_its_words(one: Statement, alone: str, beside: str) -> None:
    assert (how_sure(one), how_sure(one, beside_counts=True)) == (alone, beside)


def used(model: str, skill: str) -> About:
    return About(
        repository="r",
        models={"claude": model},
        skills={"logs": skill},
        skill_files={"logs": {"SKILL.md": skill, "a.py": "1"}},
        cases={"demo/x": skill, "demo/y": skill, "demo/z": "1"},
        skillup_version="0.1",
    )


def test_what_changed_stands_above_all_and_the_model_first() -> None:
    a = replace(a_run("a", {"x": STEADY}), about=used("sonnet-1", "1"))
    b = replace(a_run("b", {"x": "fffff"}), about=used("sonnet-2", "2"))
    found = compared_with([a], b, "the last night on main")
    lines = [
        "The model of claude changed from sonnet-1 to sonnet-2",
        "skill logs changed (SKILL.md)",
        "2 cases changed: demo/x, demo/y",
    ]
    text = printed(found)
    assert text.splitlines()[1:5] == ["What changed", *(f"  {line}" for line in lines)]
    assert text.splitlines()[6].startswith("1 case regressed (x); ")
    assert "A  the last night on main: a\n" in text
    assert re.search(r"\n\n  x  regressed  20/20 → 0/5  p [^;]+; because of f\n", text)
    assert headline(found)[0] == f"{lines[0]}."
    page = comparison_markdown(found, check_gates(found, gates_by_suite(b, {})))
    places = [page.index(part) for part in ("claude changed", "skill logs", "1 case regressed")]
    assert places == sorted(places)
    steady = printed(compared({"x": "p"}, {"x": "p"}))
    assert steady.startswith("\nWhat changed\n  nothing that skillup records\n\nNo case regressed")


def test_json_is_by_its_published_schema() -> None:
    a = replace(a_run("a", {"x": STEADY, "y": "p"}), about=used("sonnet-1", "1"))
    b = replace(a_run("b", {"x": "fffff", "z": "e"}), about=used("sonnet-2", "2"))
    found = compared_with([a], b)
    gates = check_gates(found, gates_by_suite(b, {}))
    data = comparison_data(found, gates).model_dump(mode="json")
    jsonschema.validate(data, json_schema("comparison"))
    assert data["schema_version"] == "skillup.comparison/2"
    assert data["changed"][0]["kind"] == "model"
    assert data["statements"][0]["key"]["case_id"] == "x"
    assert {case["case_id"]: case["change"] for case in data["cases"]} == {
        "x": "regressed",
        "y": "only_in_a",
        "z": "only_in_b",
    }
    assert [gate["cases"][0]["case_id"] for gate in data["gates"] if gate["cases"]] == ["x", "z"]
    history = histories([a, b], 9).model_dump(mode="json")
    jsonschema.validate(history, json_schema("history"))
    (suite,) = history["suites"]
    assert [len(run["changed"]) for run in suite["runs"]] == [0, 4]


def test_what_was_not_run_does_not_bury_what_was_lost() -> None:
    before: Cases = {f"case-{n}": "n" for n in range(60)}
    text = printed(compared({**before, "ran": "p"}, {**before, "ran": "n"}))
    rows = [line for line in text.splitlines() if "  not run  " in line]
    assert (len(rows), rows[0].split()[0]) == (40, "ran")
    assert "  … and 21 more; --json has all" in text


def test_names_cannot_steer_the_terminal() -> None:
    assert "\x1b" not in printed(compared({"\x1b[31mx": "p"}, {"\x1b[31mx": "f"}))


def test_a_long_comparison_has_its_worst_rows_first_and_the_rest_folded() -> None:
    names = [f"case-{number:04} " + "é" * 90 for number in range(3000)]
    before: Cases = dict.fromkeys(names, "pp")
    after: Cases = {**before, **dict.fromkeys(names, "pf"), names[7]: "e"}
    found = compared(before, after)
    page = comparison_markdown(found, [])
    assert len(page) <= 60_000
    shown, _, folded = page.partition("<details>")
    assert shown.count("\n| case") == 20
    assert folded.count("\n| case") > 150
    assert page.count("<details>") == page.count("</details>") == 1


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
    print_trends(histories(rows, 60), rows, console, everything=everything)
    return re.sub(r"\x1b\[[0-9;]*m", "", stream.getvalue())


def test_what_changed_between_runs_is_said_once_for_all_suites() -> None:
    cases: Cases = {"x": "p", a_key("x", suite="other"): "p"}
    a, b = (
        replace(a_run(model, cases), about=About(models={"claude": model})) for model in ("1", "2")
    )
    stream = StringIO()
    history = histories([a, b], 9)
    print_trends(history, [a, b], Console(file=stream, width=200))
    line = "changed at 2 (2026-01-01 00:00): The model of claude changed from 1 to 2\n"
    assert stream.getvalue().count(line) == 1


def test_a_failing_case_says_whether_it_fails_always() -> None:
    words = {"p p f f": "failing", "p f e": "failing", "ppp ppf e pff": "not always passing"}
    for nights, word in words.items():
        assert f"a: {word} since 00" in trends([{"a": night} for night in nights.split()])


def test_a_pass_rate_that_surely_fell_says_where_and_from_what() -> None:
    text = trends([{"a": night} for night in (*["ppp"] * 9, "fff", "fff")])
    assert "a: regressed at 010 (2026-01-01 00:00): 27/27 before, 0/6 since (p" in text
