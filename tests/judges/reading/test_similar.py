"""Similarity: by a model's judgement, by embeddings."""

from __future__ import annotations

import pytest

from skillup.judges.usage import UsageTracker
from tests.support.records import make_record
from tests.support.scripted_asker import ScriptedAsker, checks, read

TWO = make_record("Something else.", "How much do you want to raise?")
SIMILAR = {"similar": {"to": "What amount are you raising?"}}
EMBEDDED = {"similar": {"to": "What amount?", "embedding_model": "test:small"}}


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


@pytest.mark.parametrize(
    ("vectors", "score"),
    [
        ([[1, 0], [1, 0]], 1.0),
        ([[1, 0], [0, 1]], 0.0),
        ([[1, 0], [-1, 0]], 0.0),
        ([[3, 4], [4, 3]], 0.96),
    ],
)
def test_embeddings_are_compared_by_their_cosine(vectors: list[list[float]], score: float) -> None:
    asker, usage = ScriptedAsker(vectors=vectors), UsageTracker()
    (result,) = read(asker, checks(EMBEDDED), TWO, turn=2, usage=usage)
    assert (result.score, result.passed) == (score, score >= 0.8)
    assert result.found == f"{score:.2f} by test:small"
    (question,) = asker.embedded
    asked = (question.model.model, question.texts)
    assert asked == ("test:small", ("How much do you want to raise?", "What amount?"))
    assert (usage.calls, usage.costs) == (1, [0.25])


@pytest.mark.parametrize("vectors", ["refused", [[1, 0]], [[1, 0], [1]], [[0, 0], [1, 0]], []])
def test_vectors_that_cannot_be_compared_are_an_error(vectors: list[list[float]] | str) -> None:
    (result,) = read(ScriptedAsker(vectors=vectors), checks(EMBEDDED), TWO, turn=2)
    assert result.error == (
        vectors
        if isinstance(vectors, str)
        else "test:small gave no two vectors that can be compared"
    )
    assert not result.passed
