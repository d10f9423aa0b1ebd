"""On paper: the summary, the table and what failed, unfolded, without the page's controls."""

from __future__ import annotations

from pathlib import Path

from tests.browser.conftest import Opener
from tests.browser.made import large_report, row
from tests.browser.pages import Opened, address_of


def printed(seen: Opened) -> None:
    """As the browser has the page when it prints."""
    # A function around it, as the browser's driver calls what comes out of a script.
    seen.page.evaluate("() => { window.print = () => dispatchEvent(new Event('beforeprint')); }")
    seen.page.emulate_media(media="print")
    seen.page.keyboard.press("Control+p")
    seen.page.wait_for_selector("#annex .conversation")


def test_failed_conversations_are_printed_unfolded_without_controls(seen: Opened) -> None:
    seen.page.set_viewport_size({"width": 700, "height": 900})
    seen.page.wait_for_function("() => innerWidth === 700")
    printed(seen)
    titles = seen.texts("#annex h1")
    assert any(title.startswith("tour") for title in titles)
    assert any(title.startswith("closed") for title in titles)
    assert not any(title.startswith("renewal") for title in titles)
    assert seen.page.locator("#annex .tool:not([open])").count() == 0
    assert seen.page.locator("#annex .tool-inside").count() > 4
    cut = """[...document.querySelectorAll('#annex .text')]
      .filter((node) => node.scrollHeight > node.clientHeight + 2).length"""
    assert seen.page.evaluate(cut) == 0
    for selector in (".top", ".filter", ".unfold", ".skip-link"):
        assert not any(node.is_visible() for node in seen.page.locator(selector).all()), selector
    assert seen.page.pdf().startswith(b"%PDF")
    seen.page.evaluate("() => { dispatchEvent(new Event('afterprint')); }")
    assert seen.page.locator("#annex").count() == 0
    assert seen.page.locator("main details[open]").count() == 0, "folded again"


def failing(path: Path, cases: int) -> str:
    """A report of so many cases, each of which failed for a reason of its own."""
    rows = [{**row(n, 1), "status": "FAIL", "reason": f"reason {n}"} for n in range(1, cases + 1)]
    return address_of(large_report(path, cases, 1, rows=rows))


def test_a_hundred_are_printed_and_how_many_are_not_is_said(
    open_page: Opener, tmp_path: Path
) -> None:
    with open_page(failing(tmp_path / "r.html", 103)) as seen:
        printed(seen)
        assert seen.page.locator("#annex .conversation").count() == 100
        assert seen.page.inner_text("#not-printed") == (
            "3 more conversations failed, beyond the first 100: filter the table to print others."
        )
