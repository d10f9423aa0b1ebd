"""A report of 500 cases of five turns: opened and filtered without doing work that is not seen."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.browser.conftest import Opener
from tests.browser.made import large_report
from tests.browser.pages import Opened, address_of


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return large_report(tmp_path_factory.mktemp("large") / "report.html", 500)


@pytest.fixture
def seen(open_page: Opener, large: Path) -> Iterator[Opened]:
    with open_page(address_of(large)) as page:
        yield page


def elements(seen: Opened) -> int:
    """How many elements the page has."""
    return int(seen.page.evaluate("document.querySelectorAll('*').length"))


def test_it_is_smaller_than_10_megabytes(large: Path) -> None:
    assert large.stat().st_size < 10_000_000


def test_only_rows_near_the_window_are_made_and_the_rest_when_they_are_needed(
    seen: Opened,
) -> None:
    assert len(seen.cases()) == 60
    assert seen.texts("#shown") == ["500 trials"]
    assert seen.texts("#more") == ["Show 440 more"]
    seen.page.click("#more")
    assert seen.focused() == seen.cases()[60]
    assert 60 < len(seen.cases()) < 250
    seen.page.wait_for_function(
        """() => {
          scrollTo(0, document.documentElement.scrollHeight);
          return document.querySelectorAll('#rows tr').length === 500;
        }"""
    )
    assert len(set(seen.cases())) == 500


def test_a_filter_finds_rows_that_were_not_made_yet(seen: Opened) -> None:
    seen.page.fill("#filter-text", "number 499")
    assert seen.cases() == ["case-499"]
    seen.page.fill("#filter-text", "")
    seen.page.click('[data-status="FAIL"]')
    assert len(seen.cases()) == 50


def test_conversations_are_unpacked_when_they_are_opened(seen: Opened) -> None:
    before = elements(seen)
    seen.page.evaluate("location.hash = '#/trial/7'")
    seen.page.wait_for_selector(".conversation")
    assert elements(seen) < before
    assert seen.page.inner_text(".verdict") == "● passed score 1 all checks passed"
    assert seen.page.locator(".tool-inside").count() == 0
    seen.page.locator(".tool summary").first.click()
    assert seen.page.locator(".tool-inside").count() == 1


def test_walking_past_the_end_of_what_is_made_goes_on(seen: Opened) -> None:
    made = seen.cases()
    seen.page.locator("#rows a").last.focus()
    seen.page.keyboard.press("j")
    assert seen.focused() not in made
    assert len(seen.cases()) > len(made)
