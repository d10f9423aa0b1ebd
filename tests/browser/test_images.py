"""Pictures that an agent made are shown, small, and nothing else is taken for one."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest

from skillup.reports.html.build import packed, page_html
from tests.browser.conftest import Opener
from tests.browser.data import data_of
from tests.browser.made import large_report
from tests.browser.pages import Opened, address_of
from tests.support.pictures import png


def write(path: Path, *images: dict[str, Any]) -> str:
    """A report of a conversation whose turn made these."""
    index, details = data_of(large_report(path, 1, 1))
    paths = [one["path"] for one in images]
    details["1"]["turns"][0]["changes"] = {
        "added": paths, "modified": [], "deleted": [], "diff": "", "images": list(images),
    }  # fmt: skip
    path.write_bytes(page_html(index, [("1", packed(details["1"]))], title="images"))
    return address_of(path)


def image(width: int, height: int) -> dict[str, Any]:
    made = png(width, height)
    told = {"path": "logo.png", "size": len(made), "type": "image/png"}
    return {**told, "width": width, "height": height, "data": base64.b64encode(made).decode()}


def unfolded(seen: Opened) -> None:
    seen.go("#/trial/1")
    seen.page.click(".changes > summary")
    seen.page.wait_for_selector(".images")


def test_it_is_drawn_within_bounds_and_named(open_page: Opener, tmp_path: Path) -> None:
    with open_page(write(tmp_path / "r.html", image(900, 900)), width=360) as seen:
        unfolded(seen)
        shown = seen.page.locator(".images img")
        shown.evaluate("(node) => node.decode()")
        assert shown.evaluate("(node) => node.naturalWidth") == 900
        assert shown.get_attribute("alt") == "logo.png"
        box = shown.bounding_box()
        assert box is not None
        assert box["x"] + box["width"] <= 360
        assert box["width"] == pytest.approx(box["height"], abs=1)
        caption = seen.page.inner_text("figcaption").replace("\u202f", " ")
        assert caption.startswith("logo.png 900 × 900, ")


def test_nothing_else_is_taken_for_a_picture(open_page: Opener, tmp_path: Path) -> None:
    others: list[dict[str, Any]] = [
        {"type": "image/svg+xml"},
        {"type": "text/html"},
        {"type": "image/png,<script>"},
        {"data": "http://example.com/track.png"},
        {"data": '" onerror="window.hacked=1'},
        {"data": None, "path": "large.png", "size": 2_000_000, "width": None},
    ]
    images = [{**image(3, 2), **more} for more in others]
    with open_page(write(tmp_path / "r.html", *images)) as seen:
        unfolded(seen)
        assert seen.page.locator("main img").count() == 0
        said = seen.texts("figcaption")
        assert ["not shown here" in one for one in said] == [True] * len(others)
        assert said[-1].replace("\u202f", " ") == "large.png 2 000 kB, not shown here"
