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
    assert seen.texts("#shown") == [f"12 of {trials} trials, 1 case"]
    seen.page.fill("#filter-text", "-moody")
    assert "moody" not in seen.cases()
    assert len(seen.cases()) == len(everything) - 2
    seen.page.fill("#filter-text", "passed")
    assert seen.cases() == [], "not looked for in what all rows say"
    seen.page.click('[data-status="FAIL"]')
    seen.page.click("#clear")
    assert seen.cases() == everything
    assert seen.page.input_value("#filter-text") == ""


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


def test_statuses_tags_and_variants_are_choices_and_a_link_has_them(
    seen: Opened, open_page: Opener
) -> None:
    for status, cases in (("ERROR", {"closed"}), ("SKIP", {"closed", "gate"})):
        seen.page.click(f'[data-status="{status}"]')
        assert set(seen.cases()) == cases
        assert seen.page.get_attribute(f'[data-status="{status}"]', "aria-pressed") == "true"
    seen.page.click('[data-status="ERROR"]')
    assert set(seen.cases()) == {"gate"}
    seen.page.click("#clear")
    seen.page.select_option("#filter-tag", "branches")
    assert set(seen.cases()) == {"remove", "remove/refuse", "remove/agree"}
    seen.page.select_option("#filter-variant", "without_skill")
    assert len(seen.cases()) == 3
    seen.page.click(".bar-name.status-FAIL")
    assert seen.page.input_value("#filter-variant") == "with_skill"
    # A link reproduces the view.
    seen.page.click("#clear")
    seen.page.fill("#filter-text", "remove")
    seen.page.click('[data-status="FAIL"]')
    seen.page.click(".column-case button")
    shown = seen.cases()
    address = seen.page.url.removeprefix(seen.base)
    assert "q=remove" in address
    with open_page(seen.base) as other:
        other.go(address)
        assert other.cases() == shown
        assert other.page.input_value("#filter-text") == "remove"
        assert other.page.get_attribute('[data-status="FAIL"]', "aria-pressed") == "true"


def test_what_failed_comes_first_and_columns_sort_both_ways_and_back(seen: Opened) -> None:
    planned = seen.cases()
    for order, cases in (("ascending", sorted(planned)), ("descending", sorted(planned)[::-1])):
        seen.page.click(".column-case button")
        assert seen.cases() == cases
        assert seen.page.get_attribute("th.column-case", "aria-sort") == order
    seen.page.click(".column-case button")
    assert seen.cases() == planned
    seen.go("#/?variant=with_skill")
    words = [status.split()[-1] for status in seen.texts("#rows td.column-status .status")]
    order_of = ["failed", "flaky", "error", "skipped", "passed"].index
    assert words == sorted(words, key=order_of)
    # What is said is said by signs and words, not by colour.
    seen.go("#/")
    row = seen.page.locator("#rows tr", has_text="closed").first
    assert row.locator(".dot").all_inner_texts() == ["●", "!", "○"]
    said_aloud = row.locator(".dots").get_attribute("aria-label")
    assert said_aloud == "turn 1 ok, turn 2 error, turn 3 skipped"
    sentence = seen.page.inner_text("h1").replace("\u202f", " ")
    for said in (
        "passed with the skill",
        "95 % interval",
        "1 ended in an error (no verdict)",
        "1 skip",
    ):
        assert said in sentence
    assert seen.page.inner_text("#baseline").startswith("Without the skill ")
