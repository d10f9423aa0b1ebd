"""Similarity, by a model's judgement."""

from __future__ import annotations

import pytest

from tests.support.records import make_record
from tests.support.scripted_asker import ScriptedAsker, checks, read

TWO = make_record("Something else.", "How much do you want to raise?")
SIMILAR = {"similar": {"to": "What amount are you raising?"}}


@pytest.mark.parametrize(("score", "passed"), [(0.8, True), (0.79, False), (1, True), (0, False)])
def test_a_model_says_how_close_the_answer_is(score: float, passed: bool) -> None:
    asker = ScriptedAsker({"reason": "same", "score": score, "quote": "how much"})
    (result,) = read(asker, checks(SIMILAR), TWO, turn=2)
    assert (result.passed, result.score) == (passed, score)
    assert result.found == f"{score:.2f}: same"
    assert result.excerpt == "turn 2 · answer: How much do you want to raise?"


def test_only_the_answer_is_compared() -> None:
    asker = ScriptedAsker({"reason": "same", "score": 1.0})
    read(asker, checks(SIMILAR), TWO)
    assert "   | What amount are you raising?" in asker.prompt
    assert "turn 2 · answer" in asker.prompt
    assert "Something else." not in asker.prompt
    assert "Go on." not in asker.prompt
