"""The judge's answer is taken strictly."""

from __future__ import annotations

import json
from typing import Any

import pytest

from skillup.judges.agent.question import AgentAnswer
from skillup.judges.models.question import MalformedAnswerError, read_answer
from skillup.judges.voting import Vote

ASKED = ("a", "b")
A = {"id": "a", "pass": True, "reason": "yes", "evidence": ["q", " "]}
B = {"id": "b", "pass": False, "reason": " no ", "evidence": []}


def _text(*parts: Any) -> str:
    return json.dumps({"criteria": list(parts)})


@pytest.mark.parametrize(
    "text",
    [
        _text(A, B),
        _text(B, A),
        f"```json\n{_text(A, B)}\n```",
        f"```\n{_text(A, {**B, 'reason': ' no '})}\n```\n",
        f"\ufeff{_text(A, B)}\n",
    ],
)
def test_one_object_that_is_the_whole_message_is_the_answer(text: str) -> None:
    answer = read_answer(text, AgentAnswer, ASKED)
    assert answer.vote_on("a") == Vote(1.0, True, "yes", ("q",))
    assert answer.vote_on("b") == Vote(0.0, False, "no")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("All good.", "no JSON object"),
        ('{"criteria": [', "not one JSON object"),
        ('{"pass": true}', "criteria: Field required"),
        (_text(A), "each `id` of a, b once"),
        (_text(A, A, B), "each `id` of a, b once"),
        (_text(A, B, {**A, "id": "c"}), "each `id` of a, b once"),
        (_text({**A, "pass": "true"}, B), "pass: Input should be a valid boolean"),
        (_text({**A, "reason": ""}, B), "reason: Value error, must not be empty"),
        (_text({**A, "evidence": "q"}, B), "evidence: Input should be a valid list"),
        (_text(A, B) + ' {"criteria": []}', "not one JSON object"),
        (f"It wrote {_text(A, B)} but I cannot judge.", "other text"),
        (f"```json\n{_text(A, B)}\n```\nThat is what it wrote.", "other text"),
        (f"```json\n{_text(B)}\n```\n```json\n{_text(A, B)}\n```", "not one JSON object"),
        (f"{_text(A, B)}\n```json\n{_text(A, B)}\n```", "not one JSON object"),
        (_text(A, B).replace('"pass": false', '"pass": false, "pass": true'), "twice"),
        ('{"criteria": ' + "[" * 100_000, "too deeply"),
    ],
)
def test_anything_else_is_malformed(text: str, said: str) -> None:
    """J1: what stands beside other text may be what somebody else wrote."""
    with pytest.raises(MalformedAnswerError, match=said):
        read_answer(text, AgentAnswer, ASKED)
