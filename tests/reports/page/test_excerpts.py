"""From a check's excerpt back to the piece of text that it is about."""

from __future__ import annotations

import random

import pytest

from skillup.checks import evaluate
from skillup.checks.context import around
from skillup.reports.html.evidence import NormalizedText, argument_pieces, piece_in, utf16
from skillup.schema.checks import Check
from tests.support.records import make_record

ALPHABET = "abc  \n\t.…\"'()é\u0301\U0001f600\u212b\r"


def found_by(check: Check, text: str) -> str | None:
    """The piece that is marked for a check of the answer `text`."""
    result = evaluate(check, make_record(text).context(turn=1))
    span = piece_in(NormalizedText(text), result.excerpt, result.found)
    return None if span is None else text[slice(*span)]


@pytest.mark.parametrize("before", [0, 3, 59, 60, 61, 500])
@pytest.mark.parametrize("after", [0, 3, 59, 60, 61, 500])
def test_a_text_is_found_wherever_it_stands(before: int, after: int) -> None:
    text = "x" * before + "Needle" + "y" * after
    assert found_by(Check(contains="needle"), text) == "Needle"
    assert found_by(Check(matches="N[e]+dle"), text) == "Needle"


def test_an_unwanted_text_is_found_too() -> None:
    text = f"{'a' * 90} I am very sorry\nfor that. {'b' * 90}"
    assert found_by(Check(not_contains=["SORRY\nfor"]), text) == "sorry\nfor"
    assert found_by(Check(matches={"none": ["s.rry"]}), text) == "sorry"


def test_the_very_place_is_found_of_several_alike() -> None:
    text = "no needle. " * 40
    result = evaluate(Check(contains="needle"), make_record(text).context(turn=1))
    assert piece_in(NormalizedText(text), result.excerpt, result.found) == (3, 9)
    later = around(text, (14 + 11 * 20, 20 + 11 * 20))
    span = piece_in(NormalizedText(text), later, 'found "needle"')
    assert span is not None
    assert text[slice(*span)] == "needle"


def test_what_is_longer_than_an_excerpt_is_marked_as_far_as_it_is_shown() -> None:
    text = "a" * 100 + "N" * 500 + "b" * 100
    piece = found_by(Check(matches="N+"), text)
    assert piece is not None
    assert set(piece) == {"N"}
    assert len(piece) > 200


def test_an_excerpt_that_is_not_in_the_text_marks_nothing() -> None:
    assert piece_in(NormalizedText("an answer"), "another text", "") is None
    assert piece_in(NormalizedText("an answer"), "", "found nothing") is None
    assert piece_in(NormalizedText(""), "…", "") is None


def test_random_pieces_are_within_what_is_marked() -> None:
    lots = random.Random(7)
    for _ in range(400):
        text = "".join(lots.choices(ALPHABET, k=lots.randint(1, 400)))
        seen = NormalizedText(text)
        if not seen.plain.strip():
            continue
        start = lots.randrange(len(seen.plain))
        end = min(len(seen.plain), start + lots.randint(1, 30))
        piece = seen.plain[start:end].strip()
        if not piece.strip("…"):
            continue
        start = seen.plain.index(piece, start)
        end = start + len(piece)
        span = piece_in(seen, around(seen.plain, (start, end)), "")
        assert span is not None, (text, piece)
        assert 0 <= span[0] < span[1] <= len(text)


def test_places_are_counted_as_javascript_does() -> None:
    text = "\U0001f600e\u0301 x\r\nneedle"
    result = evaluate(Check(contains="needle"), make_record(text).context(turn=1))
    span = piece_in(NormalizedText(text), result.excerpt, result.found)
    assert span is not None
    assert text[slice(*span)] == "needle"
    assert utf16(text, span[0]) == span[0] + 1


def test_a_call_is_taken_apart() -> None:
    assert argument_pieces('Bash(command="rm -rf (x)")') == ("Bash", 'command="rm -rf (x)"')
    assert argument_pieces("no call at all") is None
