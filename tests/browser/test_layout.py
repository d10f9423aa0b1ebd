"""Nothing hangs out of the window or lies on something else, at three widths."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.browser.conftest import Opener
from tests.browser.pages import Opened
from tests.browser.views import places, unfold

HERE = Path(__file__).parent
OUTSIDE = (HERE / "outside.js").read_text("utf-8")

OVERLAPPING = (HERE / "overlapping.js").read_text("utf-8")


@pytest.mark.slow
@pytest.mark.parametrize("width", [360, 820, 1440])
def test_nothing_sticks_out_or_overlaps(open_page: Opener, report: str, width: int) -> None:
    with open_page(report, width=width) as seen:
        for place in places(seen):
            seen.go(place)
            assert wrong(seen) == [], place
            unfold(seen)
            assert wrong(seen) == [], f"{place}, unfolded"


def test_nothing_sticks_out_of_the_list_of_runs_or_of_two_of_them(
    open_page: Opener, viewed: str
) -> None:
    with open_page(viewed, width=360) as seen:
        assert wrong(seen) == []
        new, old = seen.cases()
        seen.go(f"#/run/{new}/?against={old}")
        assert seen.page.is_visible("#against")
        assert wrong(seen) == []


def wrong(seen: Opened) -> list[str]:
    """What sticks out of the page as it stands, or overlaps."""
    scrolled = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
    found: list[str] = seen.page.evaluate(OUTSIDE) + seen.page.evaluate(OVERLAPPING)
    return found + ["the whole page"] * (seen.page.evaluate(scrolled) > 0)


def test_controls_are_large_enough_to_be_hit_on_a_phone(open_page: Opener, report: str) -> None:
    with open_page(report, width=360) as seen:
        small = """[...document.querySelectorAll('button, select, input')]
          .filter((node) => node.checkVisibility()).map((node) => node.getBoundingClientRect())
          .filter((box) => box.height < 24 || box.width < 24).length"""
        assert seen.page.evaluate(small) == 0
