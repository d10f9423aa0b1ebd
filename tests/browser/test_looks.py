"""The page in both themes, at several widths (legible: WCAG 2.2, AA; in its place), on paper."""

from __future__ import annotations

import pytest

from tests.browser.conftest import Opener
from tests.browser.made import made
from tests.browser.pages import TOO_FAINT, Opened

STILL = "() => Promise.all(document.getAnimations().map((one) => one.finished))"
GROUND = "getComputedStyle(document.documentElement).backgroundColor"


@pytest.mark.slow
@pytest.mark.parametrize(("width", "scheme"), [(360, "light"), (1280, "dark")])
def test_nothing_sticks_out_overlaps_or_is_too_faint(
    open_page: Opener, report: str, width: int, scheme: str
) -> None:
    with open_page(report, width=width, scheme=scheme) as seen:
        small = """[...document.querySelectorAll('button, select, input')]
          .filter((node) => node.checkVisibility()).map((node) => node.getBoundingClientRect())
          .filter((box) => box.height < 24 || box.width < 24).length"""
        assert width > 360 or seen.page.evaluate(small) == 0
        for place in seen.places():
            seen.go(place)
            assert seen.wrong() == [], place
            seen.unfold()
            assert seen.wrong() == [], f"{place}, unfolded"


def test_the_list_of_runs_and_two_of_them_have_room_on_a_phone(
    open_page: Opener, viewed: str
) -> None:
    with open_page(viewed, width=360) as seen:
        assert seen.wrong() == []
        new, old = seen.cases()
        seen.go(f"#/run/{new}/?against={old}")
        assert seen.page.is_visible("#against")
        assert seen.wrong() == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_lit_pieces_and_hovered_rows_stand_out_too(
    open_page: Opener, report: str, scheme: str
) -> None:
    with open_page(report, scheme=scheme) as seen:
        seen.page.hover("#rows tr:nth-child(2)")
        seen.page.keyboard.press("j")
        seen.page.evaluate(STILL)
        assert seen.page.evaluate(TOO_FAINT) == []
        seen.open_case("tour")
        seen.page.click(".capture")
        seen.page.wait_for_selector("mark.lit")
        seen.page.evaluate(STILL)
        assert seen.page.evaluate(TOO_FAINT) == []


def test_the_system_decides_until_the_reader_does(open_page: Opener, report: str) -> None:
    with open_page(report, scheme="dark", reduced_motion="reduce") as seen:
        moving = """[...document.querySelectorAll('*')].filter((node) => {
          const style = getComputedStyle(node);
          return parseFloat(style.transitionDuration) > 0 || style.animationName !== 'none';
        }).length"""
        assert seen.page.evaluate(moving) == 0
        dark = seen.page.evaluate(GROUND)
        seen.page.click("#theme")
        light = seen.page.evaluate(GROUND)
        assert light != dark
        seen.page.keyboard.press("t")
        assert seen.page.evaluate(GROUND) == dark
        seen.page.emulate_media(media="print", color_scheme="dark")
        assert seen.page.evaluate(GROUND) == "rgb(255, 255, 255)", "paper is light"


def test_failed_conversations_are_printed_unfolded_without_controls(seen: Opened) -> None:
    seen.page.set_viewport_size({"width": 700, "height": 900})
    seen.page.wait_for_function("() => innerWidth === 700")
    seen.printed()
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


def test_a_hundred_are_printed_and_how_many_are_not_is_said(show: Opener) -> None:
    page = made(103, 1)
    for n, row in enumerate(page.index["rows"]):
        row.update(status="FAIL", reason=f"reason {n}")
    with show(page) as seen:
        seen.printed()
        assert seen.page.locator("#annex .conversation").count() == 100
        assert seen.page.inner_text("#not-printed") == (
            "3 more conversations failed, beyond the first 100: filter the table to print others."
        )
