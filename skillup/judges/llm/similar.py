"""Does the answer mean the same as a text? By a model's judgement, or by its embeddings."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Annotated

from pydantic import Field

from skillup.checks.context import beginning
from skillup.checks.scoring import reaches
from skillup.judges.llm.asking import Asking
from skillup.judges.llm.prompt import (
    HOW_TO_QUOTE,
    HOW_TO_REASON,
    JudgePrompt,
    assembled,
    material_of,
)
from skillup.judges.llm.rubric import evidence_of, result_of, said
from skillup.judges.llm.subject import Exchange, Part, ReadSubject
from skillup.judges.llm.votes import AnswerForm, Number, Reason, Vote, by_mean, no_vote
from skillup.schema.check_specs import Similar
from skillup.schema.checks import Check
from skillup.schema.grade import CheckResult, CheckRole

TARGET = "Judge one answer of the agent: the only text of the material."
TASK = """\
How close is the answer in meaning to this reference?

{reference}

Only meaning counts: wording, order, style, length and language do not."""

ANSWER = """\
- {reason}
- {quote}
- `score`: a number from 0 to 1. These are the marks of the scale; numbers in between are allowed.
   1.0: the same meaning: each says all that the other says.
   0.8: the same meaning, but for a minor detail that one has and the other lacks.
   0.5: the main point in part: something substantial is missing or added.
   0.2: the same subject, but it says something else.
   0.0: unrelated, or it contradicts the reference."""


class SimilarityAnswer(AnswerForm):
    """How close an answer is in meaning to a reference."""

    reason: Reason = Field(description="One sentence: what they share, or where they part.")
    quote: str = Field(
        "", description="The deciding passage, copied exactly from the answer; may be empty."
    )
    score: Annotated[float, Number, Field(ge=0, le=1)] = Field(
        description="0 (unrelated or contradictory) to 1 (the same meaning)."
    )


async def read_similar(
    check: Check, subject: ReadSubject, role: CheckRole, asking: Asking
) -> CheckResult:
    """The agent's last answer, compared with the check's text."""
    spec = check.similar
    assert spec is not None
    if spec.embedding_model is not None:
        return await _by_embeddings(check, spec, spec.embedding_model, subject, role, asking)
    alone = Exchange(subject.exchanges[-1].label, 1, (Part("answer", "answer", subject.answer),))
    material = material_of([alone])
    reference = "\n".join(f"   | {line}" for line in spec.to.splitlines())
    question = JudgePrompt(
        target=TARGET,
        task=TASK.format(reference=reference),
        answer=ANSWER.format(reason=HOW_TO_REASON, quote=HOW_TO_QUOTE),
    )
    samples = await asking.ask(assembled(question, material, [alone]), SimilarityAnswer)
    votes = [
        no_vote(sample.error)
        if (value := sample.value) is None
        else Vote(value.score, reaches(value.score, spec.threshold), value.reason, value.quote)
        for sample in samples
    ]
    tally = by_mean(votes, spec.threshold)
    excerpt, notes = evidence_of(tally, material)
    return result_of(
        check, subject, role, passed=tally.passed, score=tally.score, error=tally.error,
        found=f"{tally.score:.2f}: {said(tally.reason)}", excerpt=excerpt,
        notes=[*material.notes, *notes], stability=tally.stability,
    )  # fmt: skip


async def _by_embeddings(
    check: Check, spec: Similar, model: str, subject: ReadSubject, role: CheckRole, asking: Asking
) -> CheckResult:
    """By the cosine of the two texts' vectors; below 0 counts as 0. It is asked once."""
    if not subject.answer.strip():
        found = "0.00: the answer is empty"
        return result_of(check, subject, role, passed=False, score=0.0, found=found)
    answer = await asking.embed(model, [subject.answer, spec.to])
    score, error = 0.0, answer.error
    if error is None:
        cosine = _cosine(answer.vectors or ())
        error = f"{model} gave no two vectors that can be compared" if cosine is None else None
        score = max(0.0, min(1.0, cosine or 0.0))
    return result_of(
        check, subject, role, passed=reaches(score, spec.threshold), score=score,
        found=f"{score:.2f} by {answer.model or model}", excerpt=beginning(subject.answer),
        error=None if error is None else " ".join(error.split()),
    )  # fmt: skip


def _cosine(vectors: Sequence[Sequence[float]]) -> float | None:
    """None: these are not two vectors of one space."""
    if len(vectors) != 2 or len(vectors[0]) != len(vectors[1]):
        return None
    length = math.hypot(*vectors[0]) * math.hypot(*vectors[1])
    if not length or not math.isfinite(length):
        return None
    return math.fsum(a * b for a, b in zip(*vectors, strict=True)) / length
