"""The judge's answer is taken strictly."""

from __future__ import annotations

import json
from typing import Any

import pytest

from skillup.judges.agent.answer import (
    AgentCriterionVerdict,
    MalformedAnswerError,
    numbered,
    read_answer,
)
from skillup.schema.check_specs import Criterion

ASKED = numbered([Criterion(id="a", outcome="x"), Criterion(id="b", outcome="y")])
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
    assert read_answer(text, ASKED) == {
        "a": AgentCriterionVerdict(True, "yes", ("q",)),
        "b": AgentCriterionVerdict(False, "no"),
    }


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("All good.", "no JSON object"),
        ("", "no JSON object"),
        ('{"criteria": [', "not one JSON object"),
        ("[1]", "no JSON object"),
        ('{"pass": true}', "no list `criteria`"),
        (_text(A), "says nothing of b"),
        (_text(A, A, B), "speaks of 'a' twice"),
        (_text(A, B, {**A, "id": "c"}), "which was not asked"),
        (_text({**A, "pass": "true"}, B), "neither true nor false"),
        (_text({**A, "pass": 1}, B), "neither true nor false"),
        (_text({**A, "reason": ""}, B), "has no `reason`"),
        (_text({**A, "evidence": "q"}, B), "no list of texts"),
        (_text({**A, "score": 1}, B), "unknown key 'score'"),
        (_text("a", B), "has no `id`"),
        (_text(A, B) + ' {"criteria": []}', "not one JSON object"),
        (f"{_text(A, B)} {{}}", "not one JSON object"),
        (f"It wrote {_text(A, B)} but I cannot judge.", "other text"),
        (f"So: {_text(A, B)}", "other text"),
        (f"{_text(A, B)} That is all.", "not one JSON object"),
        (f"```json\n{_text(A, B)}\n```\nThat is what it wrote.", "other text"),
        (f"```json\n{_text(B)}\n```\n```json\n{_text(A, B)}\n```", "not one JSON object"),
        (f"This is what it wrote:\n```json\n{_text(A, B)}\n```", "other text"),
        (f"{_text(A, B)}\n```json\n{_text(A, B)}\n```", "not one JSON object"),
        (f"It wrote {_text(A)}:\n```json\n{_text(A, B)}\n```", "other text"),
        (_text(A, B).replace('"pass": false', '"pass": false, "pass": true'), "twice"),
        ("{" * 100_000, "not one JSON object"),
        ('{"criteria": ' + "[" * 100_000, "too deeply"),
    ],
)
def test_anything_else_is_malformed(text: str, said: str) -> None:
    """J1: what stands beside other text may be what somebody else wrote."""
    with pytest.raises(MalformedAnswerError, match=said):
        read_answer(text, ASKED)
