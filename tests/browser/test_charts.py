"""Charts: drawn, named, and said in words by a table."""

from __future__ import annotations

from pathlib import Path

import pytest

from skillup.reports.html.build import packed, page_html
from tests.browser.conftest import Opener
from tests.browser.data import data_of
from tests.browser.made import large_report
from tests.browser.pages import Opened, address_of


@pytest.mark.slow
def test_past_runs_are_drawn_with_named_axes_and_a_table(seen: Opened) -> None:
    chart = seen.page.locator("#trend .chart")
    assert chart.locator("svg .chart-point").count() >= 2
    assert chart.get_attribute("role") == "img"
    assert "the table below has the numbers" in str(chart.get_attribute("aria-label"))
    assert seen.texts("#trend .axis") == ["mean pass rate of the cases", "runs, oldest to newest"]
    table = seen.page.locator("#trend .chart-table").first
    table.locator("summary").click()
    assert table.locator("tbody tr").count() >= 2
    assert "%" in table.inner_text()


def test_runs_of_one_day_are_told_apart_and_partial_ones_are_beside_the_line(
    open_page: Opener, tmp_path: Path
) -> None:
    marks = [
        {"run_id": f"r{at}", "started_at": f"2026-01-01T0{at}:30:00Z", "passed": 1, "held": 1,
         "error": 0, "score": 1.0}
        for at in range(3)
    ]  # fmt: skip
    history = [
        {"suite": "large", "case_id": f"case-{n}", "engine": "scripted", "variant": "with_skill",
         "marks": marks if n == 1 else marks[::2], "failing_since": None}
        for n in range(1, 6)
    ]  # fmt: skip
    path = large_report(tmp_path / "report.html", 5, history=history)
    with open_page(address_of(path), timezone_id="UTC") as seen:
        seen.page.wait_for_selector("#trend .chart-ring")
        assert seen.page.locator("#trend .chart-run").all_text_contents() == [
            "00:30",
            "01:30",
            "02:30",
        ]
        assert seen.page.locator("#trend .chart-ring").count() == 1
        assert seen.page.locator("#trend .chart-point").count() == 2
        seen.page.locator("#trend .chart-table summary").first.click()
        numbers = [text.replace("\u202f", " ") for text in seen.texts("#trend td.number")]
        assert numbers == ["100 %", "100 % (1 of 5 cases)", "100 %"]


def test_where_conversations_first_fail_is_counted_by_turn(
    open_page: Opener, tmp_path: Path
) -> None:
    path = large_report(tmp_path / "report.html", 4, trials=5)
    with open_page(address_of(path)) as seen:
        assert seen.texts("#failures .turn-bar-name")[-2:] == ["turn 5", "end"]
        assert seen.texts("#failures .turn-bar-count") == ["", "", "", "", "7", "5"]
        assert "of 20 with a verdict" in seen.page.inner_text("#failures .axis")
        seen.page.locator("#failures .chart-table summary").click()
        assert seen.texts("#failures tbody th") == ["case-1", "case-3", "case-2"]
        assert seen.texts("#failures tbody tr:first-child td") == ["0", "0", "0", "0", "5", "0"]


def test_past_runs_are_listed_case_by_case(seen: Opened) -> None:
    seen.page.locator('#trend summary:has-text("Each case")').click()
    assert seen.page.locator("#trend .dot").count() >= 20


def test_what_the_skill_adds_is_said_with_its_interval(seen: Opened) -> None:
    assert "points" in seen.page.inner_text("#uplift")
    assert seen.texts("#flaky a")[0] == "moody"


@pytest.mark.parametrize(
    ("costs", "shown"),
    [([None, None], "–"), ([None, 0.0], "–"), ([0.0, 0.0], "$0"), ([None, 0.5], "$0.50")],
)
def test_what_a_simulated_user_took_is_not_known_where_nobody_told_it(
    costs: list[float | None], shown: str, open_page: Opener, runs: Path, tmp_path: Path
) -> None:
    index, details = data_of(runs / "report.html")
    for row in index["rows"]:
        row["simulator"] = None
    for row, cost in zip(index["rows"], costs, strict=False):
        row["simulator"] = {"messages": 2, "cost_usd": cost, "tokens": None, "models": []}
    path = tmp_path / "told.html"
    path.write_bytes(page_html(index, [(n, packed(one)) for n, one in details.items()], title="-"))
    with open_page(address_of(path)) as seen:
        assert seen.texts("#totals tbody tr:last-child td.number") == [shown, "–"]


def test_what_it_took_is_told_apart_by_who_spent_it(seen: Opened) -> None:
    assert seen.texts("#totals tbody th") == ["Agent", "Judges", "Simulated user"]
    assert "4 messages" in seen.page.inner_text("#totals")
