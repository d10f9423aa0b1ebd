"""Rules of `reconstruct`: what a history says becomes variables."""

from __future__ import annotations

from typing import Any

import pytest

from skillup.checks.text import Captured
from skillup.schema.case import HistoryMessage, Reconstruct
from skillup.trial.history import rebuild

PAIRS = {"marker": r"Q\d+:", "fields": ["stage", "size"], "default": "", "pending": "open"}


def said(*lines: str) -> list[HistoryMessage]:
    """``a: text`` of the assistant, ``u: text`` of the user."""
    roles = {"a": "assistant", "u": "user"}
    return [
        HistoryMessage.model_validate({"role": roles[line[0]], "content": line[3:]})
        for line in lines
    ]


def rebuilt(rule: dict[str, Any], *lines: str) -> Captured:
    return rebuild(Reconstruct.model_validate(rule), said(*lines))


@pytest.mark.parametrize(
    ("lines", "values"),
    [
        (["a: Q1: Stage?", "u: Seed", "a: Q2: Size?", "u: 12"],
         {"stage": "Seed", "size": "12", "open": ""}),
        (["a: Thanks. Q1: Stage?\nTake your time.", "u: Seed", "a: Good. Q2: Size?"],
         {"stage": "Seed", "size": "", "open": "Size?"}),
        (["u: hello", "a: Hi!", "u: go on"], {"stage": "", "size": "", "open": ""}),
        # an answer in two messages; what is said after it is about something else
        (["a: Q1: Stage?", "u: Seed", "u: or nearly", "a: I see.", "u: bye"],
         {"stage": "Seed\n\nor nearly", "size": "", "open": ""}),
        # a remark in between does not close the question
        (["a: Q1: Stage?", "a: No hurry.", "u: Seed"], {"stage": "Seed", "size": "", "open": ""}),
        # asked again in the same words: the same question, the later answer
        (["a: Q1: Stage?", "u: hm", "a: Q1: stage?", "u: Seed", "a: Q2: Size?", "u: 3"],
         {"stage": "Seed", "size": "3", "open": ""}),
        (["a: Q1: Stage?", "u: hm", "a: Q2: Size?", "u: 3", "a: Q1: Stage?"],
         {"stage": "", "size": "3", "open": "Stage?"}),
    ],
)  # fmt: skip
def test_answers_belong_to_the_fields_in_the_order_of_the_questions(
    lines: list[str], values: dict[str, str]
) -> None:
    assert rebuilt({"pairs": PAIRS}, *lines) == Captured(values)


def test_a_group_named_question_says_what_the_question_is() -> None:
    rule = {"pairs": {**PAIRS, "marker": r"\[ask\] (?P<question>.*?) \[/ask\]"}}

    assert rebuilt(rule, "a: [ask] Stage? [/ask] please").values["open"] == "Stage?"


def test_an_answer_that_is_missing_without_a_default_says_what_was_asked() -> None:
    pairs = {key: value for key, value in PAIRS.items() if key != "default"}

    found = rebuilt({"pairs": pairs}, "a: Q1: Stage?", "u: Seed")

    assert found.miss == (
        '`size` was not answered in the history (questions found: "Stage?"); '
        "correct the `marker`, or give a `default`"
    )


@pytest.mark.parametrize(
    ("more", "value"),
    [
        ({}, "3"),
        ({"take": "first"}, "1"),
        ({"role": "user"}, "2"),
        ({"role": "assistant", "take": "first"}, "1"),
        ({"take": "last_message"}, "none"),
        ({"role": "assistant", "take": "last_message"}, "3"),
        ({"role": "user", "take": "last_message"}, "none"),
    ],
)
def test_a_capture_looks_through_the_history(more: dict[str, str], value: str) -> None:
    """V11: a marker may be asked of the very last message, whoever's."""
    rule = {"capture": {"variable": "n", "pattern": r"n=(\d)", "default": "none"}, **more}

    said = ("a: n=1", "u: n=2", "a: n=3", "u: none")
    assert rebuilt(rule, *said).values == {"n": value}


def test_a_capture_that_finds_nothing_takes_its_default_or_is_a_miss() -> None:
    capture = {"variable": "n", "pattern": r"n=(\d)"}

    assert rebuilt({"capture": {**capture, "default": "0"}}, "u: x").values == {"n": "0"}
    missed = rebuilt({"capture": capture, "role": "user"}, "a: n=1").miss or ""
    assert missed.startswith(r"capture `n`: no message of the user of the history has /n=(\d)/; ")


@pytest.mark.parametrize(
    "rule",
    [
        {"capture": {"variable": "n", "pattern": "(a+)+$", "default": "none"}},
        {"pairs": {"marker": "(a+)+$", "fields": ["n"], "default": "none"}},
    ],
)
def test_a_regex_that_takes_too_long_is_a_miss_whatever_the_default(rule: dict[str, Any]) -> None:
    found = rebuilt(rule, *[f"a: {'a' * 50_000}!"] * 5)

    assert "took too long" in (found.miss or "")
