"""Of a text or pattern that was not found: the nearest line, and what would have matched."""

from __future__ import annotations

import time
from typing import Any

import pytest

from skillup.checks.evaluate import evaluate
from skillup.checks.nearest import near_words
from skillup.schema.checks import Check
from skillup.schema.grade import CheckResult
from tests.support.records import make_record

ANSWER = "I counted.\n\nTotal: 1,204 rows\nIt’s in the file – not in “a\u00a0b”.\n\tΟκ, done"


def ask(spec: dict[str, Any], answer: str = ANSWER) -> CheckResult:
    return evaluate(Check.model_validate(spec), make_record(answer).context(1))


@pytest.mark.parametrize(
    ("spec", "before", "rest", "would"),
    [
        ({"contains": "total: 1204 rows"}, "Total: 1", "204 rows", []),
        ({"contains": "It's in the file"}, "It", "'s in the file", ["quote"]),
        ({"contains": "the file - not"}, "It’s in the file ", "- not", ["dash"]),
        ({"contains": "file\n–  not"}, "It’s in the file", "\n–  not", ["space"]),
        ({"contains": 'not in "a b"'}, "…file – not in ", '"a b"', ["space", "quote"]),
        ({"contains": "I Counted.", "case_sensitive": True}, "I ", "Counted.", ["case"]),
        # The piece that is nearest, of several; the first in order decides nothing.
        ({"contains": {"any": ["something else", "1,204 rowz"]}}, "Total: 1,204 row", "z", []),
        ({"contains": {"all": ["counted", "1204 rows"]}}, "Total: 1", "204 rows", []),
        ({"matches": r"^Total: [\d,]+"}, "", r"^Total: [\d,]+", ["(?m)"]),
        ({"matches": r"Total: \d+ (rows|lines)"}, "Total: 1", " (rows|lines)", []),
        ({"matches": r"none|Total: \d+ rows"}, "Total: 1", " rows", []),
        ({"matches": r"total: [\d,]+"}, "", r"total: [\d,]+", ["case"]),
        ({"matches": "counted.*rows"}, "I counted.", "rows", ["(?s)"]),
        ({"matches": "file [-] not"}, "It’s in the file ", "[-] not", ["dash"]),
        ({"matches": r"^total: \d+ rows$"}, "", r"^total: \d+ rows$", []),
        ({"matches": r"Total: \d+ rows|none"}, "Total: 1", " rows|none", []),
        ({"equals": "I counted.\n\nTotal: 1204"}, "Total: 1", "204", []),
    ],
)
def test_the_nearest_line_with_the_first_difference(
    spec: dict[str, Any], before: str, rest: str, would: list[str]
) -> None:
    near = ask(spec).nearest

    assert near is not None
    assert near.line[: near.at].removeprefix("…").endswith(before.removeprefix("…"))
    assert near.wanted[near.matched :] == rest
    assert near.would_match == would
    assert all(ANSWER[span.start : span.end] for span in near.spans)
    assert near_words(near).endswith(("ignored", "marks", ")", "dash", "space", "on", '"'))


def test_what_is_unlike_everything_has_no_nearest_line_and_what_passed_none() -> None:
    for spec in ({"contains": "another thing"}, {"matches": r"\d{9}|tos|yes"}, {"equals": ""}):
        assert (ask(spec).passed, ask(spec).nearest) == (False, None)
    for passed in ({"contains": "rows"}, {"none_of": [{"contains": "1204 rows"}]}):
        result = ask(passed)
        assert result.passed
        assert not any(one.nearest for one in (result, *result.children))


@pytest.mark.parametrize(
    ("answer", "spec"),
    [
        ("the row of file and total count 1204 " * 3500, {"contains": "count of rows, 1204 " * 9}),
        ("ab" * 65_000, {"contains": "abba" * 50}),
        ("\u0301" * 130_000, {"contains": "x\u0301y"}),
        ("\n" * 130_000, {"matches": "(?m)^a$"}),
        ("word " * 26_000, {"matches": r"(\w{2,4} ?)+(a+)+zz"}),
    ],
)
def test_long_answers_take_a_bounded_number_of_passes(answer: str, spec: dict[str, Any]) -> None:
    started = time.process_time()
    assert sum(letter == "\0" for letter in answer) == 0
    one_pass = time.process_time() - started
    assert not ask(spec, answer).passed
    # Each piece with each place, as without bounds, would be tens of thousands.
    assert time.process_time() - started - one_pass < 1500 * one_pass
