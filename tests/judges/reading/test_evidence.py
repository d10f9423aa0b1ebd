"""Quotations: found as people would find them, and not where they are not."""

from __future__ import annotations

import pytest

from skillup.judges.reading.evidence import excerpt_of
from skillup.judges.reading.exchanges import Part

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
    assert excerpt_of(quotation, PARTS)


@pytest.mark.parametrize(
    "quotation", ["all 13 files", "12 files ... She said", "done all 12", "She said ... nothing"]
)
def test_what_is_not_there_is_not_found(quotation: str) -> None:
    assert excerpt_of(quotation, PARTS) is None


def test_an_empty_quotation_claims_nothing() -> None:
    assert excerpt_of(" \n", PARTS) == ""


def test_an_answer_is_quoted_rather_than_the_user() -> None:
    excerpt = excerpt_of("all 12 files", PARTS)
    assert excerpt is not None
    assert "Straße" in excerpt
    assert excerpt_of("please", PARTS) == "all 12 files, please"


def test_a_quotation_is_not_put_together_from_two_texts() -> None:
    assert excerpt_of("please ... She said", PARTS) is None
