"""On paper: the summary, the table and what failed, unfolded, without the page's controls."""

from __future__ import annotations

from tests.browser.pages import Opened


def printed(seen: Opened) -> None:
    """As the browser has the page when it prints."""
    seen.page.evaluate("window.print = () => dispatchEvent(new Event('beforeprint'))")
    seen.page.emulate_media(media="print")
    seen.page.keyboard.press("Control+p")
    seen.page.wait_for_selector("#annex .conversation")


def test_failed_conversations_are_printed_unfolded(seen: Opened) -> None:
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


def test_controls_are_not_printed(seen: Opened) -> None:
    printed(seen)
    for selector in (".top", ".filter", ".unfold", ".copy", ".skip-link"):
        assert not any(node.is_visible() for node in seen.page.locator(selector).all()), selector


def test_charts_fit_on_the_paper(seen: Opened) -> None:
    seen.page.set_viewport_size({"width": 700, "height": 900})
    printed(seen)
    for chart in seen.page.locator(".chart").all():
        frame = chart.bounding_box()
        drawing = chart.locator("svg").bounding_box()
        assert frame is not None
        assert drawing is not None
        assert drawing["width"] <= frame["width"] + 1


def test_dark_pages_are_printed_dark_on_light(seen: Opened) -> None:
    seen.page.emulate_media(media="print", color_scheme="dark")
    ground = "getComputedStyle(document.documentElement).backgroundColor"
    assert seen.page.evaluate(ground) == "rgb(255, 255, 255)"
    seen.page.evaluate("document.documentElement.dataset.theme = 'dark'")
    assert seen.page.evaluate(ground) == "rgb(255, 255, 255)"


def test_what_was_opened_for_printing_is_folded_again(seen: Opened) -> None:
    printed(seen)
    seen.page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert seen.page.locator("#annex").count() == 0
    assert seen.page.locator("details[data-printed]").count() == 0


def test_a_pdf_can_be_made(seen: Opened) -> None:
    assert seen.page.pdf().startswith(b"%PDF")
