"""Charts: drawn, named, and said in words by a table."""

from __future__ import annotations

import pytest

from tests.browser.pages import Opened


@pytest.mark.parametrize("panel", ["trend", "curves"])
def test_a_chart_is_drawn_has_a_name_and_a_table(seen: Opened, panel: str) -> None:
    chart = seen.page.locator(f"#{panel} .chart")
    assert chart.locator("svg .ct-point").count() >= 2
    assert chart.get_attribute("role") == "img"
    assert "the table below has the numbers" in str(chart.get_attribute("aria-label"))
    table = seen.page.locator(f"#{panel} .chart-table").first
    table.locator("summary").click()
    assert table.locator("tbody tr").count() >= 2
    assert "%" in table.inner_text()


def test_where_conversations_first_fail_falls_from_all_to_some(seen: Opened) -> None:
    seen.page.locator("#curves .chart-table summary").click()
    shares = seen.texts("#curves tbody tr:first-child td.number")[1:]
    values = [int(share.split("\u202f")[0]) for share in shares]
    assert len(values) == 3
    assert values == sorted(values, reverse=True)


def test_past_runs_are_listed_case_by_case(seen: Opened) -> None:
    seen.page.locator('#trend summary:has-text("Each case")').click()
    assert seen.page.locator("#trend .dot").count() >= 20


def test_what_the_skill_adds_is_said_with_its_interval(seen: Opened) -> None:
    assert "points" in seen.page.inner_text("#uplift")
    assert seen.texts("#flaky a")[0] == "moody"


def test_what_it_took_is_told_apart_by_who_spent_it(seen: Opened) -> None:
    assert seen.texts("#totals tbody th") == ["Agent", "Judges", "Simulated user"]
    assert "4 messages" in seen.page.inner_text("#totals")
