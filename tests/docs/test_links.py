"""Links between the pages lead to files and headings that exist."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.blocks import PAGES

_LINK = re.compile(r"(?<!!)\[[^\]]*\]\((?P<target>[^)\s]+)\)")
_HEADING = re.compile(r"^#+ (?P<text>.+)$", re.MULTILINE)


def _links() -> Iterator[tuple[Path, str]]:
    for page in PAGES:
        for found in _LINK.finditer(page.read_text("utf-8")):
            if "://" not in found["target"]:
                yield page, found["target"]


@pytest.mark.parametrize(
    ("page", "target"), list(_links()), ids=lambda value: getattr(value, "name", value)
)
def test_a_link_leads_to_a_file_and_a_heading(page: Path, target: str) -> None:
    path, _, anchor = target.partition("#")
    file = (page.parent / path).resolve() if path else page
    assert file.exists()
    if anchor:
        assert anchor in _anchors(file)


def _anchors(page: Path) -> set[str]:
    """As GitHub makes them: lower case, spaces to dashes, other signs dropped."""
    headings = (found["text"].lower() for found in _HEADING.finditer(page.read_text("utf-8")))
    return {re.sub(r"[^\w\- ]", "", text).replace(" ", "-") for text in headings}
