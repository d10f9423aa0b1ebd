"""What a person reads of all trials together, and how it fits the terminal."""

from __future__ import annotations

import io

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console

from skillup.analysis import analyse
from skillup.reports.analysis.render import print_analysis
from skillup.schema.grade import Grade
from tests.support.graded import a_check, a_grade, a_result, a_turn, grades_of


def shown(*grades: Grade, width: int = 100, encoding: str = "utf-8", **request: object) -> str:
    """The text for a terminal of `width` columns."""
    bytes_of = io.BytesIO()
    stream = io.TextIOWrapper(bytes_of, encoding=encoding, errors="backslashreplace")
    console = Console(file=stream, width=width, force_terminal=True, no_color=True, highlight=False)
    info = {"request": request}
    print_analysis(analyse(a_result(grades), info), console)
    stream.flush()
    text = bytes_of.getvalue().decode(encoding)
    for style in ("\x1b[1m", "\x1b[2m", "\x1b[0m"):
        text = text.replace(style, "")
    return text


def _words(line: str) -> list[str]:
    return line.split()


def conversation(trial: int, turns: str) -> Grade:
    held = [a_turn(n, passed=mark == "p") for n, mark in enumerate(turns, start=1)]
    return a_grade("c", "p" if set(turns) == {"p"} else "f", trial, turns=held)


def test_a_plain_run_has_nothing_to_add() -> None:
    used = a_check("skill_used", expected="x")
    assert shown(a_grade("a", assertions=[used]), a_grade("b", "f"), a_grade("d", "e")) == ""


def test_several_trials_make_a_table_and_name_what_wavers() -> None:
    text = shown(*grades_of("wavers", "ppfe"), *grades_of("steady", "pppp"))

    lines = text.splitlines()
    assert lines[1] == "Trials"
    assert lines[2].split() == _words("case passed rate 95 % pass@2 pass^2 no verdict")
    wavers = "wavers 2/3 67% 21%–94% 100% 33% 1 error"
    assert lines[3].split() == wavers.split()
    assert lines[4].split() == ["steady", "4/4", "100%", "51%–100%", "100%", "100%"]
    assert "flaky: wavers (2/3)" in lines


def test_the_curve_shows_the_turns_at_which_it_falls() -> None:
    text = shown(*(conversation(n, t) for n, t in enumerate(["pppp", "pfpp", "ppff", "pppp"], 1)))

    assert "  c:  turn 1 100% → turn 2 75% → turn 3 50% → turn 4 50%" in text.splitlines()


def test_a_nearly_perfect_rate_is_not_called_perfect() -> None:
    text = shown(*grades_of("c", 299 * "p" + "f"))

    assert "299/300  99.7%" in text


def test_decisions_and_what_they_saved_are_told() -> None:
    text = shown(*grades_of("c", "p" * 30), until_decided=True)

    assert "above 80%" in text


def test_the_baseline_is_compared_case_by_case_and_in_what_it_took() -> None:
    usage = {"input_tokens": 1500, "output_tokens": 500}
    with_skill = [*grades_of("a", "pp", usage=usage, cost_usd=0.2), *grades_of("b", "pe")]
    bare = {"input_tokens": 500, "output_tokens": 500}
    without = [
        *grades_of("a", "ff", variant="without_skill", usage=bare, cost_usd=0.5),
        *grades_of("b", "ee", variant="without_skill"),
    ]
    lines = [" ".join(line.split()) for line in shown(*with_skill, *without).splitlines()]

    assert "demo (1 case) 100% 0% +100 +7 to +100 0.33" in lines
    assert "a 2/2 0/2 +100 +7 to +100 0.33" in lines
    assert "b 1/1 – – – –" in lines
    why = "without a verdict in both, or only on whether the skill was used, so not counted"
    assert f"demo: {why}: b" in lines
    assert "tokens 2.0k 1.0k +1000 –" in lines
    assert "cost $0.20 $0.50 -$0.30 –" in lines


def test_skills_show_how_often_they_were_used_when_wanted_and_when_not() -> None:
    def trial(case: str, kind: str, passed: bool) -> Grade:
        return a_grade(case, assertions=[a_check(kind, expected="log", passed=passed)])

    text = shown(
        trial("a", "skill_used", True),
        trial("b", "skill_used", False),
        trial("d", "skill_not_used", False),
    )

    assert ["log", "1/2", "0/1", "50%", "50%", "0.50"] in [x.split() for x in text.splitlines()]


def engines(count: int) -> list[Grade]:
    marks = ["ppp", "ppf", "fff", "eee", "ppe"]
    return [
        grade
        for n in range(count)
        for case in ("asks-before-it-deletes", "greets")
        for grade in grades_of(case, marks[n % len(marks)], engine=f"a-rather-long-engine-{n}")
    ]


def test_engines_stand_side_by_side() -> None:
    text = shown(*engines(5), width=200)

    matrix = text[text.index("Engines") :].splitlines()
    assert [cell.strip() for cell in matrix[2].split("   ") if cell.strip()] == [
        "asks-before-it-deletes", "✓ 3/3", "~ 2/3", "✗ 0/3", "E", "✓ 2/2 1E",
    ]  # fmt: skip
    assert matrix[4].split() == ["passed", "6/6", "4/6", "0/6", "–", "4/4"]
    assert "E: errors, which are no verdict" in matrix


@pytest.mark.parametrize("width", [40, 80, 140])
def test_too_many_engines_fold_and_every_part_names_its_rows(width: int) -> None:
    text = shown(*engines(5), width=width)

    matrix = text[text.index("Engines") :]
    assert max(map(cell_len, matrix.splitlines())) <= width
    for n in range(5):
        assert f"a-rather-long-engine-{n}" in matrix
    parts = matrix.split("\n\n")
    assert len(parts) > 1
    assert all("greets" in part for part in parts)


def test_of_very_many_cases_those_that_say_something_are_shown() -> None:
    engines = [("x", "with_skill"), ("x", "without_skill"), ("y", "with_skill")]
    text = shown(
        *(
            grade
            for n in range(60)
            for engine, variant in engines
            for grade in grades_of(
                f"case-{n}", "pf" if (n, engine) == (7, "x") else "pp", engine=engine,
                variant=variant,
            )
        ),
        *grades_of("gains", "pp", engine="x"),
        *grades_of("gains", "ff", engine="x", variant="without_skill"),
    )  # fmt: skip

    assert "case-8 " not in text
    assert text.count("case-7 ") >= 3
    for line in (
        "not shown: 179 cases that passed every time",
        "not shown: 60 cases of demo x that passed as often without the skill",
        "not shown: 60 cases that passed every time on each engine",
    ):
        assert line in text
    assert "60/61" not in text
    assert "121/122" in text


def test_a_run_that_was_stopped_early_does_not_list_all_that_it_did_not_hold() -> None:
    trials = [(e, v, n) for e in "xy" for v in ("with_skill", "without_skill") for n in (1, 2)]
    not_run = [f"c{c}/{e}/{v}/{n}" for c in range(60) for e, v, n in trials]
    grades = [
        a_grade("wavers", m, n, engine=e, variant=v) for e, v, n in trials for m in "pf"[n % 2]
    ]
    stream = io.StringIO()
    result = a_result(grades, not_run=not_run)
    plan = {"suites": {"demo": {"cases": {f"c{c}": f"c{c}" for c in range(60)}}}}
    print_analysis(analyse(result, plan), Console(file=stream, width=100))
    lines = stream.getvalue().splitlines()

    assert not [line for line in lines if line.startswith(("c1 ", "  c1 "))]
    assert len(lines) < 60
    # On two engines, with and without the skill.
    assert "not shown: 240 cases of which no trial was held" in lines
    assert "not shown: 60 cases of demo x with nothing to compare" in lines
    assert lines.count("not shown: 60 cases of which no trial was held") == 2


def test_a_terminal_that_has_no_such_marks_gets_others() -> None:
    text = shown(*engines(2), encoding="ascii")

    assert "+ 3/3" in text
    assert "\\u" not in text


@settings(deadline=None)
@given(st.text(min_size=1), st.integers(20, 200))
def test_whatever_names_are_nothing_of_theirs_steers_the_terminal(name: str, width: int) -> None:
    grades = [*grades_of(name, "pf", engine=name), *grades_of(name, "fp", engine="other")]
    without = grades_of(name, "ff", engine=name, variant="without_skill")
    text = shown(*grades, *without, width=width)

    assert "\x1b" not in text
    assert "\x07" not in text
