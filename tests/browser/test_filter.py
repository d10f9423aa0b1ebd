"""The table of conversations: filter, sort, links that reproduce the view."""

from __future__ import annotations

from tests.browser.conftest import Opener
from tests.browser.pages import Opened


def test_words_narrow_the_table_and_the_count_says_so(seen: Opened) -> None:
    everything = seen.cases()
    trials = seen.texts("#shown")[0].split()[0]
    seen.page.fill("#filter-text", "moody trial")
    assert seen.cases() == []
    assert seen.page.is_visible("#nothing")
    seen.page.fill("#filter-text", "MOODY")
    assert set(seen.cases()) == {"moody"}
    assert seen.texts("#shown") == [f"12 of {trials} trials, 1 case in 2 lines"]
    seen.page.fill("#filter-text", "-moody")
    assert "moody" not in seen.cases()
    assert len(seen.cases()) == len(everything) - 2


def test_words_are_not_looked_for_in_what_all_rows_say(seen: Opened) -> None:
    seen.page.fill("#filter-text", "passed")
    assert seen.cases() == []
    assert "tag, reason" in str(seen.page.get_attribute("#filter-text", "placeholder"))


def test_conversations_are_searched_on_request(seen: Opened, open_page: Opener) -> None:
    seen.page.fill("#filter-text", "a book please.")
    assert seen.cases() == []
    seen.page.check("#filter-deep")
    seen.page.wait_for_selector("#rows tr")
    assert set(seen.cases()) == {"moody"}
    address = seen.page.url.removeprefix(seen.base)
    with open_page(seen.base) as other:
        other.go(address)
        other.page.wait_for_selector("#rows tr")
        assert set(other.cases()) == {"moody"}
        other.page.uncheck("#filter-deep")
        assert other.cases() == []


def test_statuses_are_chips_that_add_up(seen: Opened) -> None:
    seen.page.click('[data-status="ERROR"]')
    assert set(seen.cases()) == {"closed"}
    seen.page.click('[data-status="SKIP"]')
    assert set(seen.cases()) == {"closed", "gate"}
    assert seen.page.get_attribute('[data-status="SKIP"]', "aria-pressed") == "true"
    seen.page.click('[data-status="ERROR"]')
    assert set(seen.cases()) == {"gate"}


def test_tags_and_variants_are_choices(seen: Opened) -> None:
    seen.page.select_option("#filter-tag", "branches")
    assert set(seen.cases()) == {"remove", "remove/refuse", "remove/agree"}
    seen.page.select_option("#filter-variant", "without_skill")
    assert len(seen.cases()) == 3


def test_trials_without_the_skill_are_told_apart_and_the_bar_leads_to_the_others(
    seen: Opened,
) -> None:
    assert "passed with the skill" in seen.page.inner_text("#headline")
    assert seen.page.inner_text("#baseline").startswith("Without the skill ")
    with seen.arriving():
        seen.page.click(".bar-name.status-FAIL")
    assert seen.page.input_value("#filter-variant") == "with_skill"


def test_a_link_reproduces_the_view(seen: Opened, open_page: Opener) -> None:
    seen.page.fill("#filter-text", "remove")
    seen.page.click('[data-status="FAIL"]')
    seen.page.click(".column-case button")
    seen.page.click(".column-case button")
    shown = seen.cases()
    address = seen.page.url.removeprefix(seen.base)
    assert "q=remove" in address
    with open_page(seen.base) as other:
        other.go(address)
        assert other.cases() == shown
        assert other.page.input_value("#filter-text") == "remove"
        assert other.page.get_attribute('[data-status="FAIL"]', "aria-pressed") == "true"


def test_what_failed_comes_first_and_the_plan_is_a_click_away(seen: Opened) -> None:
    seen.go("#/?variant=with_skill")
    statuses = seen.texts("#rows td.column-status .status")
    words = [status.split()[-1] for status in statuses]
    order = ["failed", "flaky", "error", "skipped", "passed"]
    assert [order.index(word) for word in words] == sorted(order.index(word) for word in words)
    seen.page.click("#order")
    assert "sort=plan" in seen.page.url
    assert seen.page.get_attribute("#order", "aria-pressed") == "true"
    planned = [
        int(str(row.get_attribute("data-group"))) for row in seen.page.locator("#rows tr").all()
    ]
    assert planned == sorted(planned)


def test_columns_sort_both_ways_and_back(seen: Opened) -> None:
    planned = seen.cases()
    seen.page.click(".column-case button")
    assert seen.cases() == sorted(planned)
    assert seen.page.get_attribute("th.column-case", "aria-sort") == "ascending"
    seen.page.click(".column-case button")
    assert seen.cases() == sorted(planned, reverse=True)
    seen.page.click(".column-case button")
    assert seen.cases() == planned


def test_clear_shows_everything_again(seen: Opened) -> None:
    everything = seen.cases()
    seen.page.fill("#filter-text", "tour")
    seen.page.click('[data-status="FAIL"]')
    seen.page.click("#clear")
    seen.settled()
    assert seen.cases() == everything
    assert seen.page.input_value("#filter-text") == ""


def test_turns_are_told_by_signs_and_words_not_by_colour(seen: Opened) -> None:
    row = seen.page.locator("#rows tr", has_text="closed").first
    assert row.locator(".dot").all_inner_texts() == ["●", "!", "○"]
    words = row.locator(".dots").get_attribute("aria-label")
    assert words == "turn 1 ok, turn 2 error, turn 3 skipped"


def test_the_sentence_counts_what_was_held_apart_from_what_was_not(seen: Opened) -> None:
    sentence = seen.page.inner_text("h1").replace("\u202f", " ")
    assert "trials passed with the skill" in sentence
    assert "95 % interval" in sentence
    assert "1 ended in an error (no verdict)" in sentence
    assert "1 skipped" in sentence


def test_times_and_tokens_are_rounded_into_the_next_unit(seen: Opened) -> None:
    times = seen.page.evaluate("[999.6, 9960, 59700, 119700, 3599600].map(SK.duration)")
    assert [text.replace("\u202f", " ") for text in times] == [
        *("1.0 s", "10 s", "1 min 0 s", "2 min 0 s", "1 h 0 min"),
    ]
    assert seen.page.evaluate("SK.tokenText(999600)") == "1.0\u202fM"
