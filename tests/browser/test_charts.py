"""What the first page has below the table: bars beside their numbers, and sums."""

from __future__ import annotations

from pathlib import Path

from tests.browser.conftest import Opener
from tests.browser.made import large_report
from tests.browser.pages import Opened, address_of


def test_the_first_page_of_a_real_run_has_its_charts_and_tables(seen: Opened) -> None:
    assert seen.page.locator("#trend tbody tr").count() == 3
    assert "%" in seen.page.inner_text("#trend")
    assert "points" in seen.page.inner_text("#uplift")
    assert seen.texts("#flaky a")[0] == "moody"
    assert seen.texts("#totals tbody th") == ["Agent", "Judges", "Simulated user"]
    assert "4 messages" in seen.page.inner_text("#totals")


def test_where_conversations_first_fail_and_what_is_not_known(
    open_page: Opener, tmp_path: Path
) -> None:
    path = large_report(tmp_path / "report.html", 4, trials=5, user_costs=(0.5, None))
    with open_page(address_of(path)) as seen:
        assert seen.texts("#failures tbody th")[-2:] == ["turn 5", "end"]
        assert seen.texts("#failures td.number") == ["0", "0", "0", "0", "7", "5"]
        assert "of 20 with a verdict" in seen.page.inner_text("#failures .axis")
        assert seen.texts("#totals tbody tr:last-child td.number") == ["–", "–"]
