"""Words that were searched for in conversations are marked in the one that is opened."""

from __future__ import annotations

from pathlib import Path

from skillup.reports.html.build import packed, page_html
from tests.browser.conftest import Opener
from tests.browser.data import data_of
from tests.browser.made import large_report
from tests.browser.pages import address_of

SHOWN = """() => [...CSS.highlights.get('sk-hit')].map((range) => range.toString())"""
NOW = """() => [...CSS.highlights.get('sk-hit-now')].map((range) => {
  const box = range.getBoundingClientRect();
  return [range.toString(), box.height > 0 && box.top > 0 && box.bottom < innerHeight];
})"""


def test_hits_are_marked_walked_through_and_kept(open_page: Opener, tmp_path: Path) -> None:
    """Words stand in a folded call's result, in markup, and across signs."""
    path = tmp_path / "r.html"
    index, details = data_of(large_report(path, 1, turns=5))
    turns = details["1"]["turns"]
    turns[2]["items"][0]["result"]["content"] = "line\n" * 60 + "the Zebra is here"
    turns[3]["response"] = turns[3]["items"][1]["text"] = "A <img src=x onerror=zebra()> **ze**bra."
    turns[4]["response"] = turns[4]["items"][1]["text"] = "okapi " * 5_100
    turns[3]["checks"] = turns[4]["checks"] = []
    path.write_bytes(page_html(index, [("1", packed(details["1"]))], title="hits"))
    with open_page(address_of(path)) as seen:
        page = seen.page

        def told() -> str:
            return page.inner_text(".hits-told")

        seen.go("#/trial/1?q=zebra&deep=1")
        assert page.evaluate(SHOWN) == ["Zebra", "zebra", "zebra"]
        page.wait_for_function(f"() => ({NOW})().every(([, seen]) => seen)")
        assert page.evaluate(NOW) == [["Zebra", True]]
        assert page.locator('.turn[data-turn="3"] .tool[open]').count() == 1
        assert told() == "hit 1 of 3: zebra"
        assert page.locator("main img").count() == 0
        page.keyboard.press("h")
        assert told().startswith("hit 2 of 3")
        assert page.evaluate("document.activeElement.dataset.turn") == "4"
        page.click(".hits button >> nth=1")
        page.click(".hits button >> nth=1")
        assert told().startswith("hit 1 of 3")
        page.keyboard.press("H")
        assert told().startswith("hit 3 of 3")
        page.keyboard.press("w")
        seen.settled()
        assert page.evaluate(SHOWN) == ["Zebra", "zebra"], "the signs stand between by now"
        seen.go("#/trial/1?q=zebra+-absent+(question&deep=1")
        assert set(page.evaluate(SHOWN)) == {"Zebra", "zebra"}
        assert told().endswith("(question, zebra")
        seen.go("#/trial/1?q=okapi&deep=1")
        assert told() == "hit 1 of 5\u202f000: okapi"
        seen.go("#/trial/1/turn/2?q=nowhere&deep=1")
        assert page.evaluate(SHOWN) == []
        assert page.inner_text(".hits") == "0 hits of nowhere"
        seen.go("#/trial/1?q=case")
        assert page.locator(".hits").count() == 0
