"""Words that were searched for in conversations are marked in the one that is opened."""

from __future__ import annotations

from pathlib import Path

from skillup.reports.html.build import packed, page_html
from tests.browser.conftest import Opener
from tests.browser.data import data_of
from tests.browser.made import large_report
from tests.browser.pages import address_of

SHOWN = """() => [...CSS.highlights.get('sk-hit') || []].map((range) => range.toString())"""
SEEN = """() => {
  const box = [...CSS.highlights.get('sk-hit')][0].getBoundingClientRect();
  return box.height > 0 && box.top > 0 && box.bottom < innerHeight;
}"""


def test_hits_are_marked_and_the_first_is_shown(open_page: Opener, tmp_path: Path) -> None:
    """A word stands in a folded call's result, and in markup."""
    path = tmp_path / "r.html"
    index, details = data_of(large_report(path, 1, turns=5))
    turns = details["1"]["turns"]
    turns[2]["items"][0]["result"]["content"] = "line\n" * 60 + "the Zebra is here"
    turns[3]["response"] = turns[3]["items"][1]["text"] = "A <img src=x onerror=zebra()> **x**."
    turns[3]["checks"] = []
    path.write_bytes(page_html(index, [("1", packed(details["1"]))], title="hits"))
    with open_page(address_of(path)) as seen:
        seen.go("#/trial/1?q=zebra+-absent+(question&deep=1")
        assert set(seen.page.evaluate(SHOWN)) == {"Zebra", "zebra"}
        seen.page.wait_for_function(SEEN)
        assert seen.page.locator('.turn[data-turn="3"] .tool[open]').count() == 1
        assert seen.page.locator("main img").count() == 0
        seen.go("#/trial/1/turn/2?q=nowhere&deep=1")
        assert seen.page.evaluate(SHOWN) == []
        seen.go("#/trial/1?q=case")
        assert seen.page.evaluate(SHOWN) == []
