"""The page in both themes and at three widths: legible (WCAG 2.2, AA), nothing out of its place."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.browser.conftest import Opener
from tests.browser.pages import Opened
from tests.browser.views import places, unfold

HERE = Path(__file__).parent
OUTSIDE, OVERLAPPING, TOO_FAINT = (
    (HERE / f"{name}.js").read_text("utf-8") for name in ("outside", "overlapping", "too_faint")
)
STILL = "() => Promise.all(document.getAnimations().map((one) => one.finished))"
GROUND = "getComputedStyle(document.documentElement).backgroundColor"


def wrong(seen: Opened) -> list[str]:
    """What sticks out of the page as it stands, or overlaps."""
    scrolled = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
    found: list[str] = seen.page.evaluate(OUTSIDE) + seen.page.evaluate(OVERLAPPING)
    return found + ["the whole page"] * (seen.page.evaluate(scrolled) > 0)


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
        for place in places(seen):
            seen.go(place)
            assert wrong(seen) == [], place
            unfold(seen)
            assert wrong(seen) == [], f"{place}, unfolded"
            assert seen.page.evaluate(TOO_FAINT) == [], place


def test_the_list_of_runs_and_two_of_them_have_room_on_a_phone(
    open_page: Opener, viewed: str
) -> None:
    with open_page(viewed, width=360) as seen:
        assert wrong(seen) == []
        new, old = seen.cases()
        seen.go(f"#/run/{new}/?against={old}")
        assert seen.page.is_visible("#against")
        assert wrong(seen) == []


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
