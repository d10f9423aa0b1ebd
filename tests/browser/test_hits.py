"""Words that were searched for in conversations are marked in the one that is opened."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from skillup.reports.html.build import packed, page_html
from tests.browser.conftest import Opener
from tests.browser.data import data_of
from tests.browser.made import large_report
from tests.browser.pages import Opened, address_of

SHOWN = """() => [...CSS.highlights.get('sk-hit')].map((range) => range.toString())"""
NOW = """() => [...CSS.highlights.get('sk-hit-now')].map((range) => {
  const box = range.getBoundingClientRect();
  return [range.toString(), box.height > 0 && box.top > 0 && box.bottom < innerHeight];
})"""


@pytest.fixture
def seen(open_page: Opener, tmp_path: Path) -> Iterator[Opened]:
    """A conversation of 5 turns; words stand in a folded call's result, in markup, across signs."""
    path = tmp_path / "r.html"
    index, details = data_of(large_report(path, 1, turns=5))
    turns = details["1"]["turns"]
    turns[2]["items"][0]["result"]["content"] = "line\n" * 60 + "the Zebra is here"
    turns[3]["response"] = turns[3]["items"][1]["text"] = "A <img src=x onerror=zebra()> **ze**bra."
    turns[3]["checks"] = []
    path.write_bytes(page_html(index, [("1", packed(details["1"]))], title="hits"))
    with open_page(address_of(path)) as page:
        yield page


def test_of_a_word_that_is_everywhere_the_first_thousands_are_marked(
    open_page: Opener, tmp_path: Path
) -> None:
    path = tmp_path / "r.html"
    index, details = data_of(large_report(path, 1, turns=2))
    turn = details["1"]["turns"][0]
    turn["response"] = turn["items"][1]["text"] = "zebra " * 5_100
    turn["checks"] = []
    path.write_bytes(page_html(index, [("1", packed(details["1"]))], title="hits"))
    with open_page(address_of(path)) as seen:
        seen.go("#/trial/1?q=zebra&deep=1")
        assert seen.page.inner_text(".hits-told") == "hit 1 of 5\u202f000: zebra"


def test_the_first_hit_is_unfolded_marked_and_scrolled_to(seen: Opened) -> None:
    seen.go("#/trial/1?q=zebra&deep=1")
    assert seen.page.evaluate(SHOWN) == ["Zebra", "zebra", "zebra"]
    seen.page.wait_for_function(f"() => ({NOW})().every(([, seen]) => seen)")
    assert seen.page.evaluate(NOW) == [["Zebra", True]]
    assert seen.page.locator('.turn[data-turn="3"] .tool[open]').count() == 1
    assert seen.page.inner_text(".hits-told") == "hit 1 of 3: zebra"
    assert seen.page.locator("main img").count() == 0


def test_keys_and_buttons_go_from_one_to_the_next(seen: Opened) -> None:
    seen.go("#/trial/1?q=zebra&deep=1")
    seen.page.keyboard.press("h")
    assert seen.page.inner_text(".hits-told").startswith("hit 2 of 3")
    assert seen.page.evaluate("document.activeElement.dataset.turn") == "4"
    seen.page.click(".hits button >> nth=1")
    seen.page.click(".hits button >> nth=1")
    assert seen.page.inner_text(".hits-told").startswith("hit 1 of 3")
    seen.page.keyboard.press("H")
    assert seen.page.inner_text(".hits-told").startswith("hit 3 of 3")


def test_messages_as_written_keep_their_marks(seen: Opened) -> None:
    seen.go("#/trial/1?q=zebra&deep=1")
    seen.page.keyboard.press("w")
    seen.settled()
    assert seen.page.evaluate(SHOWN) == ["Zebra", "zebra"], "the signs stand between by now"


def test_several_words_are_marked_but_not_those_that_must_not_be_there(seen: Opened) -> None:
    seen.go("#/trial/1?q=zebra+-absent+(question&deep=1")
    assert set(seen.page.evaluate(SHOWN)) == {"Zebra", "zebra"}
    assert seen.page.inner_text(".hits-told").endswith("(question, zebra")


def test_without_a_search_in_conversations_nothing_is_marked(seen: Opened) -> None:
    seen.go("#/trial/1?q=case")
    assert seen.page.locator(".hits").count() == 0
    seen.go("#/trial/1?q=zebra&deep=1")
    seen.go("#/trial/1/turn/2?q=nowhere&deep=1")
    assert seen.page.evaluate(SHOWN) == []
    assert seen.page.inner_text(".hits") == "0 hits of nowhere"
