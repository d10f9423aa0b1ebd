"""Does the answer mean the same as a text? By a model's judgement, or by its embeddings."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Annotated

from pydantic import Field

from skillup.checks.context import beginning
from skillup.checks.scoring import reaches
from skillup.judges.llm.prompt import (
    HOW_TO_QUOTE,
    HOW_TO_REASON,
    JudgePrompt,
    indented,
)
from skillup.judges.llm.reading import QUOTE, Reading, quotations_of, quotes
from skillup.judges.llm.subject import (
    Exchange,
    material,
)
from skillup.judges.material import Part
from skillup.judges.models.endpoint import embedding_model
from skillup.judges.models.question import (
    AnswerForm,
    EmbeddingQuestion,
    Number,
    Reason,
)
from skillup.judges.voting import Facet, Vote, flat_result
from skillup.schema.check_specs import Similar
from skillup.schema.checks import Check
from skillup.schema.grade import CheckResult

SIMILAR_TARGET = "Judge one answer of the agent: the only text of the material."
SIMILAR_TASK = """\
How close is the answer in meaning to this reference?

{reference}

Only meaning counts: wording, order, style, length and language do not."""

SIMILAR_ANSWER = """\
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
    quote: str = Field("", description=QUOTE)
    score: Annotated[float, Number, Field(ge=0, le=1)] = Field(
        description="0 (unrelated or contradictory) to 1 (the same meaning)."
    )


async def read_similar(check: Check, reading: Reading) -> CheckResult:
    """The agent's last answer, compared with the check's text."""
    spec, text = check.similar, reading.text
    assert spec is not None
    blank = reading.blank(check)
    if spec.embedding_model is not None:
        return await _by_embeddings(blank, spec, spec.embedding_model, reading)
    alone = Exchange(text.last.label, 1, (Part("answer", "answer", text.answer),))
    question = JudgePrompt(
        target=SIMILAR_TARGET,
        task=SIMILAR_TASK.format(reference=indented(spec.to)),
        answer=SIMILAR_ANSWER.format(reason=HOW_TO_REASON, quote=HOW_TO_QUOTE),
    )
    shown = material([alone])
    samples = await reading.ask(question, shown, [alone], SimilarityAnswer)
    votes = [
        Vote(error=sample.error)
        if (value := sample.value) is None
        else Vote(
            value.score, reaches(value.score, spec.threshold), value.reason, quotes(value.quote)
        )
        for sample in samples
    ]
    facet = Facet("", "similar", votes, quotations_of(shown), threshold=spec.threshold)
    result = flat_result(blank, facet, shown.notes)
    if result.error is not None:
        return result
    return result.model_copy(update={"found": f"{result.score:.2f}: {result.found}"})


async def _by_embeddings(
    blank: CheckResult, spec: Similar, model: str, reading: Reading
) -> CheckResult:
    """By the cosine of the two texts' vectors; below 0 counts as 0. It is asked once."""
    answer = reading.text.answer
    if not answer.strip():
        return blank.model_copy(update={"found": "0.00: the answer is empty"})
    asked = embedding_model(model, reading.text.case.judge_model)
    vectors = await reading.answer(EmbeddingQuestion(asked, (answer, spec.to)))
    if vectors.error is not None:
        return blank.model_copy(update={"error": " ".join(vectors.error.split())})
    cosine = _cosine(vectors.value)
    if cosine is None:
        error = f"{model} gave no two vectors that can be compared"
        return blank.model_copy(update={"error": error})
    score = max(0.0, min(1.0, cosine))
    return blank.model_copy(
        update={
            "passed": reaches(score, spec.threshold),
            "score": round(score, 6),
            "found": f"{score:.2f} by {vectors.model or model}",
            "excerpt": beginning(answer),
        }
    )


def _cosine(vectors: Sequence[Sequence[float]]) -> float | None:
    """None: these are not two vectors of one space."""
    if len(vectors) != 2 or len(vectors[0]) != len(vectors[1]):
        return None
    length = math.hypot(*vectors[0]) * math.hypot(*vectors[1])
    if not length or not math.isfinite(length):
        return None
    return math.fsum(a * b for a, b in zip(*vectors, strict=True)) / length
