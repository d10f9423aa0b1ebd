"""Light and dark: chosen by the system or the reader, and legible in both (WCAG 2.2, AA)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.browser.conftest import Opener
from tests.browser.views import places, unfold

STILL = "() => Promise.all(document.getAnimations().map((one) => one.finished))"
TOO_FAINT = (Path(__file__).parent / "too_faint.js").read_text("utf-8")


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_text_stands_out_from_its_background(
    open_page: Opener, report: str, scheme: str
) -> None:
    with open_page(report, scheme=scheme) as seen:
        for place in places(seen):
            seen.go(place)
            unfold(seen)
            assert seen.page.evaluate(TOO_FAINT) == [], place


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_lit_pieces_and_hovered_rows_stand_out_too(
    open_page: Opener, report: str, scheme: str
) -> None:
    with open_page(report, scheme=scheme) as seen:
        seen.page.hover("#rows tr:nth-child(2)")
        seen.page.keyboard.press("j")
        seen.page.evaluate(STILL)
        assert seen.page.evaluate(TOO_FAINT) == []
        tour = seen.page.locator("#rows tr", has_text="tour").first.get_attribute("data-n")
        seen.go(f"#/trial/{tour}")
        seen.page.click(".capture")
        seen.page.wait_for_selector("mark.lit")
        seen.page.evaluate(STILL)
        assert seen.page.evaluate(TOO_FAINT) == []


def test_the_system_decides_until_the_reader_does_and_that_is_remembered(
    open_page: Opener, report: str
) -> None:
    ground = "getComputedStyle(document.documentElement).backgroundColor"
    with open_page(report, scheme="dark") as seen:
        dark = seen.page.evaluate(ground)
        seen.page.click("#theme")
        light = seen.page.evaluate(ground)
        assert light != dark
        # The browser writes it down in its own time, which on a busy machine may be after a reload.
        for _ in range(10):
            seen.page.reload()
            seen.settled()
            if seen.page.evaluate(ground) == light:
                break
        assert seen.page.evaluate(ground) == light
        seen.page.keyboard.press("t")
        assert seen.page.evaluate(ground) == dark
    with open_page(report, scheme="light") as seen:
        assert seen.page.evaluate(ground) == light


def test_nothing_moves_for_those_who_asked_for_that(open_page: Opener, report: str) -> None:
    with open_page(report, reduced_motion="reduce") as seen:
        moving = """[...document.querySelectorAll('*')].filter((node) => {
          const style = getComputedStyle(node);
          return parseFloat(style.transitionDuration) > 0 || style.animationName !== 'none';
        }).length"""
        assert seen.page.evaluate(moving) == 0
        assert seen.page.evaluate("SK.calm()") is True
