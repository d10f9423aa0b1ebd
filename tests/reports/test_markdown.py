"""`summary.md`: what a reviewer reads first."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from skillup.reports.markdown import escape, markdown
from skillup.reports.result import build_result
from skillup.schema.grade import CheckResult, Grade
from tests.reports.test_junit import make_grade
from tests.support.graded import a_result, grades_of


def written(*grades: Grade, planned: list[str] | None = None) -> str:
    jobs = {str(number): grade for number, grade in enumerate(grades)}
    result = build_result("run", "2026-01-01T00:00:00.000Z", jobs, planned or list(jobs), 10)
    return markdown(result)


def test_the_headline_counts_and_a_failure_is_told() -> None:
    unmet = CheckResult(name="asks first", kind="contains", passed=False, score=0, found="no")
    page = written(make_grade("a"), make_grade("b", "FAIL", assertions=[unmet], score=0.0))

    assert page.startswith("# skillup: 1 of 2 passed, 1 failed\n")
    assert "| ✅ PASS | a |" in page
    assert "- **asks first**: no" in page


def test_errors_and_what_was_not_run_are_apart_from_failures() -> None:
    page = written(make_grade("a", "ERROR"), planned=["0", "b/e/with_skill/1"])

    assert page.startswith("# skillup: 0 of 1 passed, 1 error, 1 not run\n")
    assert "## Not run (1)" in page


def test_nearly_all_is_not_all_of_them() -> None:
    """V22: 299 of 300."""
    page = written(*(make_grade(str(n), "FAIL" if n == 7 else "PASS") for n in range(300)))
    assert "| 99.7% |" in page


@given(st.text())
def test_nothing_that_an_agent_wrote_is_markdown_or_html(text: str) -> None:
    line = escape(text)

    assert "\n" not in line
    assert not re.search(r"(?<!\\)(?:\\\\)*[<>|`*_\[\]$]", line)


@pytest.mark.parametrize(
    "text",
    [
        "- a list",
        "1. a list",
        "=== a heading",
        "# a heading",
        "![i](http://evil.example/x.png) <img src=x onerror=alert(1)> <https://evil.example>",
        "a|b \\| c `code` ``more`` *strong* ~~gone~~ [a](b) [r]: http://x",
        "&lt;script&gt; <!-- x --> $\\text{x}$",
        "\x1b[2J\u202e\r\n\n> quoted",
    ],
)
def test_what_an_agent_wrote_is_text_and_nothing_else(text: str) -> None:
    html = MarkdownIt("commonmark").enable(["table", "strikethrough"]).render(escape(text))

    assert re.findall("<[^>]*>", html) == ["<p>", "</p>"]


@pytest.mark.parametrize(
    "text", ["@octocat", "#12", "org/repo#12", "GH-12", ":tada:", "https://x.example", "www.x.y"]
)
def test_github_finds_nobody_to_call_and_nothing_to_link(text: str) -> None:
    plain = re.sub(r"\\(?=[!-/:-@\[-`{-~])", "", escape(text))
    rendered = MarkdownIt("commonmark").render(escape(text))

    assert "<a" not in rendered
    assert plain.replace("\u2060", "") == text
    assert escape(text) != text
    assert not re.search(r"[@#]\w|://|www\.", re.sub(r"\\#", "#", escape(text)))


def test_a_large_run_stays_within_what_github_shows() -> None:
    wide = "é" * 250
    grades = [make_grade(f"{n} {wide}", "FAIL" if n % 9 == 0 else "PASS") for n in range(4000)]

    page = written(*grades)

    assert len(page.encode()) <= 1 << 20
    assert "more trials; result.json has them all." in page
    assert "## What did not pass" in page


def test_what_is_larger_still_is_cut_at_a_line_and_says_so() -> None:
    warned = [make_grade(str(n), "FAIL", reason="é" * 300) for n in range(60)]
    for grade in warned:
        grade.assertions.extend(
            CheckResult(name="é" * 120, kind="x", passed=False, score=0, found="漢" * 300)
            for _ in range(40)
        )

    page = written(*warned)

    assert len(page.encode()) <= 1 << 20
    assert page.endswith("`result.json` has all of it.\n")


def test_of_many_trials_those_that_did_not_pass_have_rows() -> None:
    many = [*grades_of("good", "p" * 30), *grades_of("bad", "fe")]
    text = markdown(a_result(many))
    rows = [line for line in text.splitlines() if line.startswith(("| ❌", "| ⚠️", "| ✅"))]
    assert [row.split(" | ")[1].split()[0] for row in rows] == ["bad", "bad"]
    assert "\n- … and 30 more trials; result.json has them all.\n" in text
    assert markdown(a_result(many[3:])).count("| ✅ PASS | good ") == 27


def test_what_failed_without_the_skill_is_not_red() -> None:
    bare = grades_of("asks", "ff", variant="without_skill")
    text = markdown(a_result([*bare, *grades_of("asks", "fp")]))
    assert (text.count("| ➖ FAIL"), text.count("| ❌ FAIL")) == (2, 1)
