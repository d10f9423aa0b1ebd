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
    return {"passed": passed, "held": 5, "rate": passed / 5, "low": 0.2, "high": 0.9}


@pytest.fixture
def seen(open_page: Opener, tmp_path: Path) -> Iterator[Opened]:
    """100 cases of five trials; `case-1` and `case-3` failed always, `case-2` in trials 2 and 4."""
    at_k = [{"k": k, "pass_at_k": k / 5, "pass_hat_k": 0.3} for k in range(1, 6)]
    cases = [
        {"suite": "large", "case_id": f"case-{n}", "engine": "scripted", "variant": "with_skill",
         "rate": rate(n), "flaky": n == 2, "at_k": at_k, "turns": []}
        for n in range(1, 4)
    ]  # fmt: skip
    cases.append({**cases[0], "variant": "without_skill", "flaky": True})
    overall = {"passed": 488, "held": 500, "rate": 0.976, "low": 0.5, "high": 0.99, "cases": 100}
    analysis = {"confidence": 0.95, "overall": overall, "cases": cases, "engines": []}
    more: dict[str, Any] = {"analysis": analysis, "warnings": ["the budget cannot be counted"]}
    path = large_report(tmp_path / "report.html", 100, trials=5, **more)
    with open_page(address_of(path)) as page:
        yield page


def test_a_case_is_one_line_that_says_how_often_it_passed_where_it_fails_and_why(
    seen: Opened,
) -> None:
    assert seen.cases()[:4] == ["case-1", "case-3", "case-2", "case-4"]
    failing, _, flaky = (seen.page.locator("#rows tr").nth(at) for at in range(3))
    assert failing.locator(".status").inner_text() == "✗ failed"
    assert failing.locator(".trial-dots").inner_text().split() == ["0/5", *"✗✗✗✗✗"]
    assert failing.locator(".where").inner_text() == "turn 5 ✗5"
    assert failing.locator(".reason").all_inner_texts() == ["5 of 5 turn 5: not found"]
    assert flaky.locator(".status").inner_text() == "◐ flaky"
    assert flaky.locator(".trial-dots").inner_text().split() == ["3/5", *"●✗●✗●"]
    assert flaky.locator(".reason").all_inner_texts() == ["2 of 5 turn 5: not found"]
    assert seen.texts("#shown") == ["500 trials, 100 cases"]


def test_the_keyboard_unfolds_walks_and_folds(seen: Opened) -> None:
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
    seen.page.locator(".toggle").nth(1).press("Enter")
    assert seen.page.locator("#rows tr.trial").count() == 5


def test_of_an_unfolded_case_the_wanted_trials_are_shown(seen: Opened) -> None:
    seen.page.click('[data-status="FLAKY"]')
    seen.page.click('[data-status="FLAKY"]')
    seen.page.click('[data-status="FAIL"]')
    assert seen.cases() == ["case-1", "case-3", "case-2"]
    assert seen.texts("#shown") == ["12 of 500 trials, 3 cases"]
    seen.page.locator(".toggle").nth(2).click()
    assert seen.texts("#rows tr.trial .trial-name") == ["trial 2", "trial 4"]
    hrefs = seen.page.locator("#rows tr.trial a").evaluate_all("(all) => all.map((a) => a.hash)")
    assert all("status=FAIL" in href for href in hrefs)


def test_a_failed_check_of_the_whole_conversation_has_a_mark_at_the_end(seen: Opened) -> None:
    assert seen.page.locator("#rows tr").nth(1).locator(".where").inner_text() == "end ✗5"
    seen.page.locator(".toggle").nth(1).click()
    dots = seen.page.locator("#rows tr.trial .dots").first
    assert dots.inner_text().split() == [*"●●●●●", "✗", "end"]
    assert "a check of the whole conversation failed" in str(dots.get_attribute("aria-label"))


def test_the_link_of_a_flaky_case_leads_to_its_line_unfolded_every_time(seen: Opened) -> None:
    assert seen.texts("#flaky h2") == ["Flaky (1)"], "what it does without the skill is no matter"
    assert "pass@2 40" in seen.page.inner_text("#flaky").replace("\u202f", " ")
    for _ in range(2):
        seen.page.evaluate("scrollTo(0, document.body.scrollHeight)")
        with seen.arriving():
            seen.page.click("#flaky a")
        # In the table: the pressed link has the same text, and the focus until the table is drawn.
        assert seen.page.locator("#rows :focus").count() == 1
        assert seen.focused() == "case-2"
        assert seen.texts("#rows tr.trial .trial-name") == [f"trial {n}" for n in range(1, 6)]
        row = seen.page.locator("#rows tr", has_text="case-2").first.bounding_box()
        assert row is not None
        assert 0 < row["y"] < 900
        assert "go=" not in seen.page.url


def test_a_part_of_the_bar_leads_to_the_table(seen: Opened) -> None:
    with seen.arriving():
        seen.page.click(".bar-name.status-FAIL")
    assert seen.page.locator("#rows :focus").count() == 1
    assert seen.focused() == "case-1"
    assert "status=FAIL" in seen.page.url
    assert seen.page.get_attribute('[data-status="FAIL"]', "aria-pressed") == "true"


def test_warnings_and_the_interval_over_cases_are_said_first(seen: Opened) -> None:
    sentence = seen.page.inner_text("h1").replace("\u202f", " ")
    assert "488 of 500 trials passed" in sentence
    assert "(98 %; mean of 100 cases 98 %, 95 % interval 50–99 %)" in sentence
    notice = seen.page.locator(".warning")
    assert notice.inner_text() == "the budget cannot be counted"
    table = seen.page.locator("#cases").bounding_box()
    said = notice.bounding_box()
    assert table is not None
    assert said is not None
    assert said["y"] < table["y"] < 450


def test_what_the_run_took_is_beside_the_sentence_or_below_the_table(seen: Opened) -> None:
    beside = seen.page.locator("#totals").bounding_box()
    seen.page.set_viewport_size({"width": 1000, "height": 900})
    seen.page.wait_for_function("() => innerWidth === 1000")
    below = seen.page.locator("#totals").bounding_box()
    table = seen.page.locator("#cases").bounding_box()
    assert beside is not None
    assert below is not None
    assert table is not None
    assert beside["y"] < 150
    assert below["y"] > table["y"] + table["height"]


def test_each_reason_of_a_case_is_printed_once(seen: Opened) -> None:
    printed(seen)
    assert [title.split()[0] for title in seen.texts("#annex h1")] == [
        "case-1",
        "case-3",
        "case-2",
    ]
    assert seen.texts("#annex .like")[2] == (
        "This is trial 2. For the same reason failed: trial 4."
    )
