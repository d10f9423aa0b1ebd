"""Places in texts as checks see them, as they are, and as JavaScript counts."""

from __future__ import annotations

import random

from skillup.checks.context import plain
from skillup.reports.html.evidence import NormalizedText, utf16


def test_utf16_counts_what_is_beyond_the_first_plane_twice() -> None:
    assert utf16("abc", 2) == 2
    assert utf16("a\U0001f600b", 2) == 3
    assert utf16("a\ud800b", 2) == 2


def test_a_span_of_the_normal_form_leads_back_to_the_text() -> None:
    text = "e\u0301te\u0301\r\nand \u1100\u1161 a\u0323\u0307 end"
    seen = NormalizedText(text)
    for piece in ("\u00e9t\u00e9", "and", "\uac00", "end"):
        start = seen.plain.index(piece)
        first, last = seen.back((start, start + len(piece)))
        assert plain(text[first:last]) == piece


def test_texts_that_are_plain_already_are_left_alone() -> None:
    assert NormalizedText("caf\u00e9\n").back((1, 3)) == (1, 3)


def test_every_span_of_any_text_leads_into_it() -> None:
    lots = random.Random(3)
    for _ in range(300):
        text = "".join(lots.choices("ae\u0301\u0323\r\n\u1100\u1161\u11a8\U0001f600 ", k=20))
        for seen in (NormalizedText(text), NormalizedText(text, normal=False)):
            for start in range(len(seen.plain)):
                first, last = seen.back((start, start + 1))
                assert 0 <= first <= last <= len(text)
