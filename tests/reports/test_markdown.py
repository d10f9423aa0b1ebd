"""`summary.md`: what a reviewer reads first."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from skillup.reports.markdown import escape, markdown
from skillup.reports.result import build_result
from skillup.schema.grade import CheckResult, Grade
from tests.reports.test_junit import make_grade


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


def test_errors_and_what_was_not_begun_are_apart_from_failures() -> None:
    page = written(make_grade("a", "ERROR"), planned=["0", "b/e/with_skill/1"])

    assert page.startswith("# skillup: 0 of 1 passed, 1 not run for errors, 1 not begun\n")
    assert "## Not run (1)" in page


def test_engine_variant_and_trial_are_columns_only_where_they_differ() -> None:
    assert "| case | turns |" in written(make_grade())
    assert "| case | engine | turns |" in written(make_grade(engine="x"), make_grade(engine="y"))


@given(st.text())
def test_nothing_that_an_agent_wrote_is_markdown_or_html(text: str) -> None:
    line = escape(text)

    assert "\n" not in line
    assert not re.search(r"(?<!\\)(?:\\\\)*[<>|`*_\[\]]", line)
