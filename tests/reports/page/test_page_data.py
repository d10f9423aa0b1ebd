"""The types that the page is checked against are those of its data."""

from __future__ import annotations

from skillup.reports.html.page_data import TYPES, typescript


def test_the_types_of_the_page_are_fresh() -> None:
    """If they are not: `python -m skillup.reports.html.page_data`."""
    assert TYPES.read_text("utf-8") == typescript()
