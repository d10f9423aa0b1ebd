"""The question that a rubric makes: criteria under ids of ours, and the verdicts on them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from pydantic import Field

from skillup.judges.reading.answer_fields import AnswerForm, Reason
from skillup.judges.reading.asking import Sample
from skillup.judges.reading.prompt import HOW_TO_QUOTE, HOW_TO_REASON, Question
from skillup.judges.reading.subject import Subject
from skillup.judges.reading.votes import Vote, no_vote
from skillup.schema.check_specs import Criterion
from skillup.schema.checks import Check

TASK = """\
For each criterion below, decide whether it is met. Take each by itself, and read it as it is \
written: neither more strictly nor more generously."""

ANSWER = """\
Give exactly one verdict for each of {ids}, and none for anything else. For each:
- `id`: the criterion's id.
- {reason}
- {quote}
- `verdict`: "pass" if the material shows that the criterion is met; "fail" if it is not met, \
is met only in part, or if the material does not show it. A criterion that something be absent is \
met where it is absent."""

SAME_MEANING = """\
{answer} says what the reference below says: the same facts, with the same meaning. Other words, \
another order and additional details are fine as long as nothing contradicts the reference; \
a fact of the reference that is missing, or changed, is not.
   Reference:
{reference}"""


class CriterionVerdict(AnswerForm):
    """The verdict on one criterion."""

    id: str = Field(description="The criterion's id, such as c1.")
    reason: Reason = Field(description="One sentence: what in the material decides it.")
    quote: str = Field(
        "", description="The deciding passage, copied exactly from the material; may be empty."
    )
    verdict: Literal["pass", "fail"] = Field(description="Whether the criterion is met.")


class RubricAnswer(AnswerForm):
    """One verdict for each criterion."""

    verdicts: list[CriterionVerdict] = Field(description="One for each criterion, in order.")


@dataclass(frozen=True, slots=True)
class Line:
    """A criterion under the id that the judge knows it by."""

    id: str
    criterion: Criterion
    text: str


def lines_of(checks: Sequence[Check], subject: Subject) -> list[list[Line]]:
    """The criteria of each of `checks` (`rubric`, `expected_output`), numbered throughout."""
    lines: list[list[Line]] = []
    for check in checks:
        before = sum(map(len, lines))
        lines.append(
            [
                Line(f"c{before + place}", criterion, _text(check, criterion, subject))
                for place, criterion in enumerate(_criteria(check), start=1)
            ]
        )
    return lines


def _criteria(check: Check) -> Sequence[Criterion]:
    if check.rubric is not None:
        return check.rubric.criteria
    return [Criterion(outcome=check.expected_output or "")]


def _text(check: Check, criterion: Criterion, subject: Subject) -> str:
    if check.rubric is not None:
        return "\n   ".join(criterion.outcome.strip().splitlines())
    label = subject.last_answer_label()
    reference = "\n".join(f"   | {line}" for line in criterion.outcome.splitlines())
    return SAME_MEANING.format(answer=label[:1].upper() + label[1:], reference=reference)


def question_about(lines: Sequence[Line], subject: Subject) -> Question:
    """One question about all of `lines`."""
    ids = ", ".join(line.id for line in lines)
    return Question(
        target=subject.target(),
        task=TASK,
        answer=ANSWER.format(ids=ids, reason=HOW_TO_REASON, quote=HOW_TO_QUOTE),
        criteria="\n".join(f"{line.id}: {line.text}" for line in lines),
        expected_output=subject.expected_output,
    )


def vote_on(sample: Sample[RubricAnswer], wanted: str) -> Vote:
    """What one answer says of one criterion; there must be one verdict on it."""
    if sample.value is None:
        return no_vote(sample.error)
    verdicts = [verdict for verdict in sample.value.verdicts if verdict.id.strip() == wanted]
    if not verdicts:
        others = ", ".join(repr(verdict.id) for verdict in sample.value.verdicts[:5]) or "nothing"
        return no_vote(f"the judge gave no verdict on criterion {wanted}; it answered {others}")
    if len(verdicts) > 1:
        return no_vote(f"the judge gave two verdicts on criterion {wanted}")
    verdict = verdicts[0]
    passed = verdict.verdict == "pass"
    return Vote(float(passed), passed, verdict.reason, verdict.quote)


def unasked(samples: Sequence[Sample[RubricAnswer]], asked: set[str]) -> list[str]:
    """A note on verdicts that nobody asked for: they count for nothing."""
    given = {v.id.strip() for sample in samples if sample.value for v in sample.value.verdicts}
    if not (more := sorted(given - asked)):
        return []
    return [f"the judge also gave verdicts that were not asked for: {', '.join(map(repr, more))}"]
