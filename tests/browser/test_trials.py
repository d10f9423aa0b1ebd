"""Cases that were held several times: a line each, unfolding to their trials."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.browser.conftest import Opener
from tests.browser.made import large_report
from tests.browser.pages import Opened, address_of
from tests.browser.test_print import printed


def rate(case: int) -> dict[str, object]:
    passed = 3 if case == 2 else 5
    return {"passed": passed, "judged": 5, "rate": passed / 5, "low": 0.2, "high": 0.9}


@pytest.fixture
def seen(open_page: Opener, tmp_path: Path) -> Iterator[Opened]:
    """100 cases of five trials; `case-1` and `case-3` failed always, `case-2` in trials 2 and 4."""
    cases = [
        {"suite": "large", "case_id": f"case-{n}", "engine": "scripted", "variant": "with_skill",
         "rate": rate(n), "flaky": n == 2, "at_k": [], "turns": []}
        for n in range(1, 4)
    ]  # fmt: skip
    cases.append({**cases[0], "variant": "without_skill", "flaky": True})
    overall = {"passed": 488, "judged": 500, "rate": 0.976, "low": 0.5, "high": 0.99, "cases": 100}
    analysis = {"confidence": 0.95, "overall": overall, "cases": cases, "engines": []}
    more: dict[str, Any] = {"analysis": analysis, "warnings": ["the budget cannot be counted"]}
    path = large_report(tmp_path / "report.html", 100, trials=5, **more)
    with open_page(address_of(path)) as page:
        yield page


def test_a_case_is_one_line_that_says_how_often_it_passed_where_it_fails_and_why(
    seen: Opened,
) -> None:
    sentence = seen.page.inner_text("h1").replace("\u202f", " ")
    assert "488 of 500 trials passed" in sentence
    assert "(98 %; mean of 100 cases 98 %, 95 % interval 50–99 %)" in sentence
    assert seen.page.inner_text(".warning") == "the budget cannot be counted"
    assert seen.texts("#flaky h2") == ["Flaky (1)"], "what it does without the skill is no matter"
    assert seen.cases()[:4] == ["case-1", "case-3", "case-2", "case-4"]
    failing, at_end, flaky = (seen.page.locator("#rows tr").nth(at) for at in range(3))
    assert failing.locator(".status").inner_text() == "✗ failed"
    assert failing.locator(".trial-dots").inner_text().split() == ["0/5", *"✗✗✗✗✗"]
    assert failing.locator(".where").inner_text() == "turn 5 ✗5"
    assert failing.locator(".reason").all_inner_texts() == ["5 of 5 turn 5: not found"]
    assert flaky.locator(".status").inner_text() == "◐ flaky"
    assert flaky.locator(".trial-dots").inner_text().split() == ["3/5", *"●✗●✗●"]
    assert flaky.locator(".reason").all_inner_texts() == ["2 of 5 turn 5: not found"]
    assert seen.texts("#shown") == ["500 trials, 100 cases"]
    # A failed check of the whole conversation has a mark at the end.
    assert at_end.locator(".where").inner_text() == "end ✗5"
    seen.page.locator(".toggle").nth(1).click()
    dots = seen.page.locator("#rows tr.trial .dots").first
    assert dots.inner_text().split() == [*"●●●●●", "✗", "end"]
    assert "a check of the whole conversation failed" in str(dots.get_attribute("aria-label"))
    # A part of the bar leaves its trials in the table, also of an unfolded case.
    seen.page.click(".bar-name.status-FAIL")
    assert "status=FAIL" in seen.page.url
    assert seen.page.get_attribute('[data-status="FAIL"]', "aria-pressed") == "true"
    assert seen.cases() == ["case-1", "case-3", "case-2"]
    assert seen.texts("#shown") == ["12 of 500 trials, 3 cases"]
    seen.page.locator(".toggle").nth(1).click()
    seen.page.locator(".toggle").nth(2).click()
    assert seen.texts("#rows tr.trial .trial-name") == ["trial 2", "trial 4"]
    hrefs = seen.page.locator("#rows tr.trial a").evaluate_all("(all) => all.map((a) => a.hash)")
    assert all("status=FAIL" in href for href in hrefs)


def test_the_keyboard_unfolds_walks_and_folds_and_paper_has_each_reason_once(
    seen: Opened,
) -> None:
    toggle = seen.page.locator(".toggle").first
    seen.page.keyboard.press("j")
    seen.page.keyboard.press("ArrowRight")
    assert toggle.get_attribute("aria-expanded") == "true"
    assert seen.texts("#rows tr.trial .trial-name") == [f"trial {n}" for n in range(1, 6)]
    seen.page.keyboard.press("j")
    seen.page.keyboard.press("j")
    assert seen.focused() == "trial 2"
    with seen.arriving():
        seen.page.keyboard.press("Enter")
    assert "#/trial/2" in seen.page.url
    with seen.arriving():
        seen.page.keyboard.press("Escape")
    assert seen.focused() == "trial 2"
    seen.page.keyboard.press("ArrowLeft")
    assert seen.focused() == "case-1"
    assert seen.page.locator("#rows tr.trial").count() == 0
    printed(seen)
    assert [title.split()[0] for title in seen.texts("#annex h1")] == ["case-1", "case-3", "case-2"]
