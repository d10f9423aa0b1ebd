"""What people read of all trials together, on a terminal and in `summary.md`."""

from __future__ import annotations

import io
import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console

from skillup.analysis import analyse, with_analysis
from skillup.reports.markdown import markdown
from skillup.reports.tables import sheets_of
from skillup.reports.terminal.layout import print_sheets
from skillup.schema.grade import Analysis, Difference, Grade, Rate, Uplift
from skillup.schema.line import line_of
from tests.support.graded import a_check, a_grade, a_result, grades_of


def shown(*grades: Grade, width: int = 100, encoding: str = "utf-8") -> str:
    """The text for a terminal of `width` columns."""
    bytes_of = io.BytesIO()
    stream = io.TextIOWrapper(bytes_of, encoding=encoding, errors="backslashreplace")
    console = Console(file=stream, width=width, force_terminal=True, no_color=True, highlight=False)
    print_sheets(console, sheets_of(analyse(map(line_of, grades), {})))
    stream.flush()
    return re.sub(r"\x1b\[[012]m", "", bytes_of.getvalue().decode(encoding))


def rows_of(text: str) -> list[str]:
    return [" ".join(line.split()) for line in text.splitlines()]


def engines(count: int) -> list[Grade]:
    marks = ["ppp", "ppf", "fff", "eee", "ppe"]
    return [
        grade
        for n in range(count)
        for case in ("asks-before-it-deletes", "greets")
        for grade in grades_of(case, marks[n % len(marks)], engine=f"a-rather-long-engine-{n}")
    ]


def test_a_plain_run_has_nothing_to_add() -> None:
    used = a_check("skill_used", expected="x")
    assert shown(a_grade("a", assertions=[used]), a_grade("b", "f"), a_grade("d", "e")) == ""


def test_several_trials_make_a_table_and_name_what_wavers() -> None:
    grades = [*grades_of("wavers", "ppfe"), *grades_of("steady", "pppp")]
    rows = rows_of(shown(*grades, *grades_of("nearly", 299 * "p" + "f")))

    assert rows[1:5] == [
        "Trials",
        "case passed rate 95 % pass@2 pass^2 no verdict",
        "wavers 2/3 67% 21%–94% 100% 33% 1 error",
        "steady 4/4 100% 51%–100% 100% 100%",
    ]
    assert rows[5].startswith("nearly 299/300 99.7%")
    assert "flaky: wavers (2/3), nearly (299/300)" in rows


def test_the_baseline_is_compared_case_by_case_and_in_what_it_took() -> None:
    usage, bare = ({"input_tokens": n, "output_tokens": 500} for n in (1500, 500))
    rows = rows_of(
        shown(
            *grades_of("a", "pp", usage=usage, cost_usd=0.2),
            *grades_of("b", "pe"),
            *grades_of("a", "ff", variant="without_skill", usage=bare, cost_usd=0.5),
            *grades_of("b", "ee", variant="without_skill"),
        )
    )
    why = "without a verdict in both, or only on whether the skill was used, so not counted"
    for row in (
        "demo (1 case) 100% 0% +100 +7 to +100 0.333",
        "a 2/2 0/2 +100 +7 to +100 0.333",
        "b 1/1 – – – –",
        f"demo: {why}: b",
        "tokens 2,000 1,000 +1,000 –",
        "cost $0.20 $0.50 -$0.30 –",
    ):
        assert row in rows


@pytest.mark.parametrize(
    ("name", "with_skill", "without_skill", "cells"),
    [
        ("duration_ms", 234, 266, ["0.23 s", "0.27 s", "-0.03 s"]),
        ("tokens", 18_240, 12_360, ["18,240", "12,360", "+5,880"]),
        ("cost_usd", 0.01244, 0.01236, ["$0.0124", "$0.0124", "+$0.0001"]),
    ],
)
def test_a_difference_is_taken_before_it_is_rounded(
    name: str, with_skill: float, without_skill: float, cells: list[str]
) -> None:
    found = Difference(
        with_skill=with_skill,
        without_skill=without_skill,
        difference=with_skill - without_skill,
        low=None,
        high=None,
        cases=1,
    )
    rate = Rate(passed=1, judged=1, rate=1.0, low=0.2, high=1.0)
    more: dict[str, Any] = {name: found}
    uplift = Uplift(
        suite="s",
        engine="e",
        case_id=None,
        cases=1,
        with_skill=rate,
        without_skill=rate,
        uplift=0.0,
        low=None,
        high=None,
        p=None,
        **more,
    )
    rows = [row for sheet in sheets_of(Analysis(uplift=[uplift])) for row in sheet.rows]
    assert [cell.text for cell in rows[-1][1:4]] == cells


def test_skills_show_how_often_they_were_used_where_expected_and_where_not() -> None:
    seen = [("skill_used", True), ("skill_used", False), ("skill_not_used", False)]
    grades = [
        a_grade(f"c{n}", assertions=[a_check(kind, expected="log", passed=passed)])
        for n, (kind, passed) in enumerate(seen)
    ]
    assert "log 1/2 0/1 50% 50% 0.50" in rows_of(shown(*grades))


def test_engines_stand_side_by_side() -> None:
    matrix = rows_of(shown(*engines(5), width=200).partition("Engines")[2])
    assert matrix[2] == "asks-before-it-deletes ✓ 3/3 ~ 2/3 ✗ 0/3 E ✓ 2/2 1E"
    assert matrix[4] == "passed 6/6 4/6 0/6 – 4/4"
    assert "E: errors, which are no verdict" in matrix


def test_of_one_trial_the_status_stands_and_sums_say_what_they_miss() -> None:
    grades = [
        *(a_grade("asks", mark, engine=e) for mark, e in (("p", "a"), ("e", "b"))),
        *(a_grade("says", mark, engine=e) for mark, e in (("f", "a"), ("s", "b"))),
        *(a_grade("more", "p", engine=e, cost_usd=c) for e, c in (("a", 0.19), ("b", None))),
    ]
    text = page(*grades)
    matrix = text.partition("## Engines")[2].partition("## ")[0]
    assert "| asks | PASS | ERROR |" in matrix
    assert "| says | FAIL | SKIP |" in matrix
    assert "| cost | ≥ \\$0.19 | – |" in matrix
    assert "≥ $0.19 |" in text.partition("## Engines")[0], "of all of them"
    assert text.count("| asks") == 1, "one row"


def test_at_80_columns_no_word_is_cut() -> None:
    words = ["asks-before-it-deletes-the-production-database", "says-how-many-files-are-left-there"]
    grades = [g for word in words for g in grades_of(word, "ppfe", engine="a-long-engine-name")]
    text = shown(*grades, width=80)
    assert max(map(cell_len, text.splitlines())) <= 80
    lines = [line.split()[0] for line in text.splitlines() if line.strip()]
    pieces = {f"{part}-" for word in words for part in word.split("-")} | {"database", "there"}
    for line in lines[2 : lines.index("flaky:")]:
        assert set(re.findall("[^-]+-?", line)) <= pieces


@settings(deadline=None, max_examples=15)
@given(st.text(min_size=1), st.integers(20, 200))
def test_whatever_names_are_nothing_of_theirs_steers_the_terminal(name: str, width: int) -> None:
    grades = [*grades_of(name, "pf", engine=name), *grades_of(name, "fp", engine="other")]
    without = grades_of(name, "ff", engine=name, variant="without_skill")
    assert not {"\x1b", "\x07"} & set(shown(*grades, *without, width=width))


def page(*grades: Grade) -> str:
    """Without what nobody sees: it keeps an `@` from calling somebody."""
    return markdown(with_analysis(a_result(grades), {})).replace("\u2060", "")


def test_in_markdown_it_stands_between_the_trials_and_what_failed() -> None:
    text = page(*grades_of("wavers", "ppf"), *grades_of("fails", "fff", variant="without_skill"))

    trials = text.index("## Trials")
    assert trials < text.index("## With and without the skill") < text.index("## What did not pass")
    heads = "| case | passed | rate | 95 % | pass@2 | pass^2 |\n|---|---:|---:|---:|---:|---:|"
    assert heads in text
    assert "| wavers | 2/3 | 67% | 21%–94% | 100% | 33% |" in text
    assert "- flaky: wavers (2/3)" in text


@settings(deadline=None, max_examples=40)
@given(st.text(alphabet=st.sampled_from("|`*_<>[]\\\n\r a")))
def test_no_name_breaks_out_of_its_cell(name: str) -> None:
    text = page(*grades_of(f"x{name}", "pf", engine=name), *grades_of("y", "pf", engine="e"))

    for line in text.splitlines():
        if line.startswith("| "):
            assert not re.search(r"(?<!\\)(?:\\\\)*[<>`*\[\]]", line)
    matrix = text.partition("## Engines")[2].partition("## ")[0]
    rows = [line for line in matrix.splitlines() if line.startswith("| ")]
    assert len({len(re.findall(r"(?<!\\)(?:\\\\)*\|", row)) for row in rows}) == 1
