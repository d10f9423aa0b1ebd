"""All tool calls folded and unfolded at once, however many there are."""

from __future__ import annotations

from pathlib import Path

from skillup.reports.html.build import packed, page_html
from tests.browser.conftest import Opener
from tests.browser.data import data_of
from tests.browser.made import large_report
from tests.browser.pages import TWO_FRAMES, address_of

CALLS = 1200


def test_what_was_looked_at_stays_where_it_is_and_what_is_out_of_sight_is_not_laid_out(
    open_page: Opener, tmp_path: Path
) -> None:
    path = tmp_path / "r.html"
    index, details = data_of(large_report(path, 1, 2))
    details["1"]["turns"][0]["items"] = [
        {
            "type": "tool", "kind": "shell", "name": "Bash", "arguments": {"command": f"echo {n}"},
            "result": {"status": "success", "content": f"{n}\n" * 5},
        }
        for n in range(CALLS)
    ]  # fmt: skip
    path.write_bytes(page_html(index, [("1", packed(details["1"]))], title="calls"))
    with open_page(address_of(path), reduced_motion="reduce") as seen:
        seen.go("#/trial/1")
        calls = seen.page.locator('.turn[data-turn="1"] details.tool')
        shown = "(call) => call.querySelector('.tool-main').checkVisibility({%s})"
        laid_out = shown % "contentVisibilityAuto: true"
        assert calls.first.evaluate(laid_out)
        assert not calls.nth(800).evaluate(laid_out)
        assert calls.nth(800).evaluate(shown % "")
        unfolded = seen.page.locator('.turn[data-turn="1"] details.tool[open]')
        top = """document.querySelector('.turn[data-turn="2"]').getBoundingClientRect().top"""
        seen.page.evaluate("document.body.style.paddingBottom = '3000px'")
        seen.page.evaluate(f"scrollBy({{ top: {top} - 20, behavior: 'instant' }})")
        for many in (CALLS, 0):
            seen.page.evaluate(TWO_FRAMES)
            before = seen.page.evaluate(top)
            seen.page.keyboard.press("e")
            for _ in range(2):
                seen.page.evaluate(TWO_FRAMES)
            assert unfolded.count() == many
            assert abs(seen.page.evaluate(top) - before) <= 2
        seen.go("#/trial/1?q=1071&deep=1")
        seen.page.wait_for_function(
            """() => [...CSS.highlights.get('sk-hit-now')].some((range) => {
              const box = range.getBoundingClientRect();
              return box.height > 0 && box.top > 0 && box.bottom < innerHeight;
            })"""
        )
        assert seen.page.locator("details.tool[open] .tool-main").all_inner_texts() == ["echo 1071"]
