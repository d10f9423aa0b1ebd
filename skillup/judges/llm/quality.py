"""Answer quality: several respects, each graded on a scale of five anchored steps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from pydantic import Field

from skillup.checks.scoring import reaches
from skillup.judges.llm.asking import Asking, Sample
from skillup.judges.llm.prompt import (
    HOW_TO_QUOTE,
    HOW_TO_REASON,
    JudgePrompt,
    assembled,
    material_of,
)
from skillup.judges.llm.rubric import part_result, result_of
from skillup.judges.llm.subject import ReadSubject
from skillup.judges.llm.votes import (
    AnswerForm,
    Number,
    Reason,
    Vote,
    by_mean,
    no_vote,
    stability_of,
)
from skillup.schema.check_specs import AnswerQuality, Aspect
from skillup.schema.checks import Check
from skillup.schema.grade import CheckResult, CheckRole

LOWEST, HIGHEST = 1, 5

TASK = """\
Grade what the agent answered in each of the aspects below. Take each aspect by itself: \
a fault that belongs to one must not lower another."""

ANSWER = """\
Give exactly one grade for each of {aspects}, and none for anything else. For each:
- `aspect`: its name.
- {reason}
- {quote}
- `grade`: a whole number from 1 to 5, by the steps of the aspect. Where two steps seem to fit, \
take the lower one."""

STEPS: dict[Aspect, str] = {
    "correctness": """\
correctness: is what it says right, and borne out by what the user and the tools said?
   5: everything it states is right.
   4: right, but for a slip that would mislead nobody.
   3: right in the main point; one error that matters.
   2: wrong in the main point, or wrong in several others.
   1: wrong throughout, or made up.""",
    "completeness": """\
completeness: does it answer all that was asked?
   5: every part of the request is dealt with.
   4: every part but a minor one.
   3: the main part, with something substantial missing.
   2: only a small part.
   1: nothing that was asked for.""",
    "flow": """\
flow: does it follow from what was said before, and read as one line of thought?
   5: it takes up the conversation exactly where it stands, and each step leads to the next.
   4: clear, with a needless repetition or an abrupt step.
   3: understandable with some effort: it jumps, repeats itself, or overlooks an earlier message.
   2: hard to follow, or at odds with what was said before.
   1: incoherent, or unrelated to the conversation.""",
    "format": """\
format: does its form suit its content, and keep to what the user asked for?
   5: it has just the form that was asked for or, if none was, one that serves the reader.
   4: a small departure that disturbs nobody.
   3: usable, but in a form that the reader must work around.
   2: against an explicit request, or hard to use.
   1: unusable in this form.""",
}
REFERENCE = """

A good answer would say this; hold correctness and completeness against it:
{reference}"""


class AspectGrade(AnswerForm):
    """The grade in one aspect."""

    aspect: str = Field(description="The aspect's name, such as correctness.")
    reason: Reason = Field(description="One sentence: what in the material decides it.")
    quote: str = Field(
        "", description="The deciding passage, copied exactly from the material; may be empty."
    )
    grade: Annotated[int, Number, Field(ge=LOWEST, le=HIGHEST)] = Field(
        description="1 (worst) to 5 (best), by the steps of the aspect.",
        json_schema_extra={"enum": list(range(LOWEST, HIGHEST + 1))},
    )


class QualityAnswer(AnswerForm):
    """One grade for each aspect."""

    grades: list[AspectGrade] = Field(description="One for each aspect, in order.")


async def read_quality(
    check: Check, subject: ReadSubject, role: CheckRole, asking: Asking
) -> CheckResult:
    """The mean over the aspects of ``(grade - 1) / 4``."""
    spec = check.answer_quality
    assert spec is not None
    aspects = list(dict.fromkeys(spec.aspects))
    material = material_of(subject.shown, subject.setting)
    prompt = assembled(_question(aspects, subject), material, subject.judged, spec.prompt)
    samples = await asking.ask(prompt, QualityAnswer, aspects)
    tallies = {
        aspect: by_mean([_vote(sample, aspect, spec) for sample in samples], spec.threshold)
        for aspect in aspects
    }
    children = [
        part_result(aspect, "aspect", tally, material, subject, role)
        for aspect, tally in tallies.items()
    ]
    error = next((tally.error for tally in tallies.values() if tally.error is not None), None)
    score = sum(child.score for child in children) / len(children)
    low = [child for child in children if not reaches(child.score, _least(spec))]
    passed = reaches(score, spec.threshold) and not low
    wholes = [_whole(sample, aspects, spec) for sample in samples]
    found = ", ".join(f"{child.name} {child.score:.2f}" for child in children)
    found += f"; below grade {spec.min_grade}" if low else ""
    worst = min(children, key=lambda child: child.score)
    if worst.score < 1.0 and worst.found:
        found += f"; {worst.name}: {worst.found}"
    return result_of(
        check, subject, role, passed=passed, score=score, found=found, excerpt=worst.excerpt,
        error=error, notes=material.notes, children=children,
        stability=stability_of(wholes, passed, scores=True),
    )  # fmt: skip


def _question(aspects: Sequence[Aspect], subject: ReadSubject) -> JudgePrompt:
    reference = subject.expected_output
    return JudgePrompt(
        target=subject.target(),
        task=TASK + (REFERENCE.format(reference=_block(reference)) if reference else ""),
        answer=ANSWER.format(aspects=", ".join(aspects), reason=HOW_TO_REASON, quote=HOW_TO_QUOTE),
        criteria="\n\n".join(STEPS[aspect] for aspect in aspects),
        criteria_title="Aspects",
        expected_output=reference,
    )


def _least(spec: AnswerQuality) -> float:
    """The least score of an aspect."""
    return (spec.min_grade - LOWEST) / (HIGHEST - LOWEST)


def _block(text: str) -> str:
    return "\n".join(f"   | {line}" for line in text.splitlines())


def _vote(sample: Sample[QualityAnswer], aspect: Aspect, spec: AnswerQuality) -> Vote:
    if sample.value is None:
        return no_vote(sample.error)
    grades = [one for one in sample.value.grades if one.aspect.strip().casefold() == aspect]
    if not grades:
        return no_vote(f"the judge gave no grade for {aspect}")
    if len(grades) > 1:
        return no_vote(f"the judge gave two grades for {aspect}")
    score = (grades[0].grade - LOWEST) / (HIGHEST - LOWEST)
    return Vote(score, reaches(score, spec.threshold), grades[0].reason, grades[0].quote)


def _whole(sample: Sample[QualityAnswer], aspects: Sequence[Aspect], spec: AnswerQuality) -> Vote:
    """The check as one of the answers alone would have had it."""
    votes = [_vote(sample, aspect, spec) for aspect in aspects]
    error = next((vote.error for vote in votes if vote.error is not None), None)
    if error is not None:
        return no_vote(error)
    score = round(sum(vote.score for vote in votes) / len(votes), 6)
    high = all(reaches(vote.score, _least(spec)) for vote in votes)
    return Vote(score, reaches(score, spec.threshold) and high)
