"""Relevance in sliding windows. The conversations are those of the metric's documentation, retold:
a short one that stays on its subject, one of greetings, and ones with an answer off the subject.
"""

from __future__ import annotations

import re
from typing import Any

import pytest

from skillup.judges.models.question import ModelQuestion
from skillup.schema.record import HistoryItem
from tests.support.records import Recorded, make_record, make_turn
from tests.support.scripted_asker import ScriptedAsker, checks, read

OFF = "Lisbon is the capital of Portugal."


def talk(*pairs: tuple[str, str]) -> Recorded:
    return make_record(*(make_turn(answer, content=asked) for asked, answer in pairs))


SUMS = talk(
    ("How much is 2 and 2?", "2 and 2 make 4."),
    ("And 3 and 3?", OFF),
    ("And what do 5 and 5 make?", "5 and 5 make 10."),
)
WEDDING = talk(
    ("Help me plan our wedding", "With pleasure! What do you have in mind?"),
    ("A ceremony outdoors", "Lovely. Think of the season, and of rain."),
    ("And flowers?", "Shares in technology have fallen of late."),
    ("Wedding flowers, I mean", "Roses and peonies are much liked."),
)


def is_off(question: ModelQuestion) -> dict[str, Any]:
    """A judge that knows which answers are off the subject, and judges what it is told to judge."""
    target = re.search(r"answers? of (.*?)\.", question.prompt)
    assert target is not None
    texts = re.findall(r"(turn \d+) · answer \]-----\n(.*)", question.prompt)
    wrong = ("Lisbon", "Shares")
    off = [(n, text) for n, text in texts if n in target[1].split(", ") and text.startswith(wrong)]
    quote = off[0][1] if off else ""
    return {"relevant": not off, "reason": "off" if off else "fits", "quote": quote}


def relevance(**spec: Any) -> list[Any]:
    return checks({"relevance": spec})


@pytest.mark.parametrize(
    ("recorded", "spec", "windows", "score", "passed"),
    [
        (talk(("Which is France's capital?", "Paris."), ("Its people?", "2 million."),
              ("Any sights?", "The Louvre.")), {"threshold": 0.8}, 1, 1.0, True),
        (talk(*[(f"question {n}", f"answer {n}") for n in range(4)]),
         {"threshold": 0.9, "window_size": 3}, 2, 1.0, True),
        (SUMS, {"threshold": 0.8, "window_size": 2}, 2, 0.5, False),
        (SUMS, {"threshold": 0.5, "window_size": 2}, 2, 0.5, True),
        (SUMS, {"threshold": 0.6, "window_size": 1}, 3, 0.666667, True),
        (WEDDING, {}, 1, 0.0, False),
        (WEDDING, {"threshold": 0.6, "window_size": 2}, 3, 0.666667, True),
    ],
)  # fmt: skip
def test_the_score_is_the_share_of_relevant_windows(
    recorded: Recorded, spec: dict[str, Any], windows: int, score: float, passed: bool
) -> None:
    asker = ScriptedAsker(is_off)
    (result,) = read(asker, relevance(**spec), recorded)
    assert (result.score, result.passed, result.error) == (score, passed, None)
    assert len(asker.questions) == windows


def test_windows_are_children_with_turns_reason_and_quotation() -> None:
    """J2: a passing window had none, so judges who disagreed on it were not compared."""
    (result,) = read(ScriptedAsker(is_off), relevance(window_size=2), SUMS)
    assert [(c.name, c.passed, c.found, c.excerpt) for c in result.children] == [
        ("turns 1-2", False, "off", f"turn 2 · answer: {OFF}"),
        ("turns 2-3", True, "fits", ""),
    ]
    assert result.found == "1 of 2 windows are relevant; turns 1-2: off"
    assert result.excerpt == f"turn 2 · answer: {OFF}"
    assert [(span.turn, span.end) for span in result.spans] == [(2, len(OFF))]


def test_what_was_put_in_beforehand_is_context_and_is_not_judged() -> None:
    history = [
        HistoryItem(role="user", content="I like sums."),
        HistoryItem(role="assistant", content=OFF),
    ]
    recorded = make_record(*SUMS.record.turns, history=history)
    asker = ScriptedAsker(is_off)
    (result,) = read(asker, relevance(window_size=3), recorded)
    assert result.score == 0.5
    targets = [re.findall(r"Judge the agent's .*", q.prompt)[0] for q in asker.questions]
    assert targets == [
        "Judge the agent's answers of turn 1, turn 2. What stands before is context.",
        "Judge the agent's answer of turn 3. What stands before is context.",
    ]
    assert "earlier exchange 1 · answer" in asker.questions[0].prompt
