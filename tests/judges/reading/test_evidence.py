"""Quotations: found as people would find them, and not where they are not."""

from __future__ import annotations

import pytest

from skillup.judges.material import Part
from skillup.judges.voting import Quotations, in_order_of_weight


def evidence_in(quotation: str, parts: list[Part], *, passed: bool) -> tuple[str, str | None]:
    found = Quotations(in_order_of_weight(parts)).look_up(quotation, passed=passed)
    return found.excerpt, found.note


TEXT = "She said:  “It’s **done**” –\n\tall 12 files, in Straße 5."
PARTS = [Part("user", "user", "all 12 files, please"), Part("answer", "answer", TEXT)]


@pytest.mark.parametrize(
    "quotation",
    [
        "It’s **done**",
        '"It\'s done" - all 12 files',
        "“all 12 files”",
        "ALL 12\nFILES, IN",
        "in strasse 5.",
        "She said ... 12 files",
        "'She said […] all 12 files'",
        TEXT,
    ],
)
def test_a_quotation_is_found_but_for_white_space_quotes_and_case(quotation: str) -> None:
    assert evidence_in(quotation, PARTS, passed=True)[0]


@pytest.mark.parametrize(
    "quotation", ["all 13 files", "12 files ... She said", "done all 12", "She said ... nothing"]
)
def test_what_is_not_there_is_not_found(quotation: str) -> None:
    excerpt, note = evidence_in(quotation, PARTS, passed=False)
    assert excerpt == ""
    assert "is not in what was judged" in (note or "")


def test_an_answer_is_quoted_rather_than_the_user() -> None:
    excerpt, note = evidence_in("all 12 files", PARTS, passed=True)
    assert excerpt.startswith("answer: She said")
    assert "Straße" in excerpt
    assert note is None


def test_a_quotation_is_not_put_together_from_two_texts() -> None:
    assert evidence_in("please ... She said", PARTS, passed=False)[0] == ""


@pytest.mark.parametrize(
    ("quotation", "speaker", "why"),
    [
        ("12 files, please", "user", "the agent did not say it"),
        ("be brief and kind", "system", "the agent did not say it"),
        ("S", "answer", "too short"),
        ("5.", "answer", "too short"),
        ("Yes.", "message", None),
        ("in Straße 5", "answer", None),
    ],
)
def test_a_pass_rests_on_the_agents_own_words_and_the_speaker_is_named(
    quotation: str, speaker: str, why: str | None
) -> None:
    """J8: a quotation of the user, one letter or none supported a pass without a word."""
    setting = Part("setting", "system", "be brief and kind")
    excerpt, note = evidence_in(
        quotation, [setting, *PARTS, Part("message", "message", "Yes.")], passed=True
    )
    assert excerpt.partition(":")[0] == speaker
    assert (note is None) == (why is None)
    assert (why or "") in (note or "")
