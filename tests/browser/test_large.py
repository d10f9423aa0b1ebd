"""A report of 500 cases of five turns: opened and filtered without doing work that is not seen."""

from __future__ import annotations

from pathlib import Path

from tests.browser.conftest import Opener
from tests.browser.made import large_report
from tests.browser.pages import address_of


def test_the_first_lines_are_drawn_the_rest_on_request_and_a_filter_finds_all(
    open_page: Opener, tmp_path: Path
) -> None:
    path = large_report(tmp_path / "report.html", 500)
    assert path.stat().st_size < 10_000_000
    with open_page(address_of(path)) as seen:
        assert len(seen.cases()) == 100
        assert seen.texts("#shown") == ["500 trials"]
        seen.page.fill("#filter-text", "number 499")
        assert seen.cases() == ["case-499"]
        seen.page.fill("#filter-text", "")
        assert seen.texts("#more") == ["Show 400 more"]
        seen.page.click("#more")
        seen.settled()
        assert seen.focused() == seen.cases()[100]
        assert len(set(seen.cases())) == 500
        elements = "document.querySelectorAll('*').length"
        before = seen.page.evaluate(elements)
        seen.go("#/trial/7")
        assert seen.page.evaluate(elements) < before
        assert seen.page.inner_text(".verdict") == "● passed score 1 all checks passed"
        assert seen.page.locator(".tool-inside").count() == 0
        seen.page.locator(".tool summary").first.click()
        assert seen.page.locator(".tool-inside").count() == 1
