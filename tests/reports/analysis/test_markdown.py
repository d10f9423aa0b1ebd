"""The same in `summary.md`."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from skillup.analysis import with_analysis
from skillup.reports.markdown import markdown
from skillup.schema.grade import Grade
from tests.support.graded import a_result, grades_of


def page(*grades: Grade) -> str:
    """Without what nobody sees: it keeps an `@` from calling somebody."""
    return markdown(with_analysis(a_result(grades), {})).replace("\u2060", "")


def test_tables_and_lines_stand_between_the_trials_and_what_failed() -> None:
    text = page(*grades_of("wavers", "ppf"), *grades_of("fails", "fff", variant="without_skill"))

    trials = text.index("## Trials")
    assert trials < text.index("## With and without the skill") < text.index("## What did not pass")
    assert (
        "| case | passed | rate | 95 % | pass@2 | pass^2 |\n|---|---:|---:|---:|---:|---:|" in text
    )
    assert "| wavers | 2/3 | 67% | 21%–94% | 100% | 33% |" in text
    assert "- flaky: wavers (2/3)" in text


@given(st.text(alphabet=st.sampled_from("|`*_<>[]\\\n\r a")))
def test_no_name_breaks_out_of_its_cell(name: str) -> None:
    text = page(*grades_of(f"x{name}", "pf", engine=name), *grades_of("y", "pf", engine="e"))

    for line in text.splitlines():
        if line.startswith("| "):
            assert not re.search(r"(?<!\\)(?:\\\\)*[<>`*\[\]]", line)
    rows = [line for line in text[text.index("## Engines") :].splitlines() if line.startswith("| ")]
    assert len({len(re.findall(r"(?<!\\)(?:\\\\)*\|", row)) for row in rows}) == 1
