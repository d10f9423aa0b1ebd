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


@pytest.mark.parametrize("width", [360, 820, 1440])
def test_nothing_sticks_out_or_overlaps(open_page: Opener, report: str, width: int) -> None:
    with open_page(report, width=width) as seen:
        for place in places(seen):
            seen.go(place)
            check(seen, place)
            unfold(seen)
            check(seen, f"{place}, unfolded")


def check(seen: Opened, place: str) -> None:
    """The page as it stands."""
    scrolled = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
    assert seen.page.evaluate(scrolled) <= 0, place
    assert seen.page.evaluate(OUTSIDE) == [], place
    assert seen.page.evaluate(OVERLAPPING) == [], place


def test_controls_are_large_enough_to_be_hit_on_a_phone(open_page: Opener, report: str) -> None:
    with open_page(report, width=360) as seen:
        small = """[...document.querySelectorAll('button, select, input')]
          .filter((node) => node.checkVisibility()).map((node) => node.getBoundingClientRect())
          .filter((box) => box.height < 24 || box.width < 24).length"""
        assert seen.page.evaluate(small) == 0
