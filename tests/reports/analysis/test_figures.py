"""Differences agree with the numbers beside them."""

from __future__ import annotations

import re
from typing import Any

import pytest

from skillup.reports.analysis.tables import sheets_of
from skillup.schema.analysis import Analysis, Difference, Rate, Uplift


def taken(name: str, with_skill: float, without_skill: float) -> list[str]:
    """The row of what a trial took."""
    found = Difference(
        with_skill=with_skill,
        without_skill=without_skill,
        difference=with_skill - without_skill,
        low=None,
        high=None,
        cases=1,
    )
    rate = Rate(passed=1, held=1, rate=1.0, low=0.2, high=1.0)
    more: dict[str, Any] = {name: found}
    uplift = Uplift(
        suite="s", engine="e", case_id=None, cases=1, with_skill=rate, without_skill=rate,
        uplift=0.0, low=None, high=None, p=None, **more,
    )  # fmt: skip
    analysis = Analysis(confidence=0.95, uplift=[uplift])
    rows = [[cell.text for cell in row] for sheet in sheets_of(analysis) for row in sheet.rows]
    return rows[-1][1:4]


@pytest.mark.parametrize(
    ("name", "with_skill", "without_skill", "shown"),
    [
        ("duration_ms", 234, 266, ["0.23 s", "0.27 s", "-32 ms"]),
        ("duration_ms", 9_996, 12_400, ["10 s", "12 s", "-2.4 s"]),
        ("duration_ms", 12_350, 14_740, ["12 s", "15 s", "-2.4 s"]),
        ("duration_ms", 21_960, 12_000, ["22 s", "12 s", "+10 s"]),
        ("duration_ms", 52_350, 12_000, ["52 s", "12 s", "+40 s"]),
        ("duration_ms", 12_004, 12_000, ["12 s", "12 s", "+4 ms"]),
        ("tokens", 18_240, 12_360, ["18.2k", "12.4k", "+5880"]),
        ("turns", 1.54, 1.43, ["1.54", "1.43", "+0.11"]),
        ("cost_usd", 0.01244, 0.01236, ["$0.0124", "$0.0124", "+$0.0001"]),
    ],
)
def test_a_difference_is_taken_before_it_is_rounded(
    name: str, with_skill: float, without_skill: float, shown: list[str]
) -> None:
    assert taken(name, with_skill, without_skill) == shown
    assert not re.search("-0[.0]* ", " ".join(shown))
