"""Rubrics, and the comparison with an expected output: criteria that a model finds met or not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from pydantic import Field

from skillup.checks.context import beginning, one_line
from skillup.checks.describe import expected, key_and_spec, title
from skillup.checks.scoring import reaches, weighted_mean
from skillup.judges.llm.asking import Asking, Sample
from skillup.judges.llm.evidence import evidence_in
from skillup.judges.llm.prompt import (
    HOW_TO_QUOTE,
    HOW_TO_REASON,
    JudgePrompt,
    Material,
    assembled,
    material_of,
)
from skillup.judges.llm.subject import ReadSubject
from skillup.judges.llm.votes import (
    AnswerForm,
    Reason,
    Stability,
    Vote,
    VoteCount,
    by_majority,
    no_vote,
    stability_of,
)
from skillup.schema.check_specs import Criterion
from skillup.schema.checks import Check
from skillup.schema.grade import CheckResult, CheckRole

# The question that a rubric makes: criteria under ids of ours, and the verdicts on them.

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
class CriterionLine:
    """A criterion under the id that the judge knows it by."""

    id: str
    criterion: Criterion
    text: str


def lines_of(checks: Sequence[Check], subject: ReadSubject) -> list[list[CriterionLine]]:
    """The criteria of each of `checks` (`rubric`, `expected_output`), numbered throughout."""
    lines: list[list[CriterionLine]] = []
    for check in checks:
        before = sum(map(len, lines))
        lines.append(
            [
                CriterionLine(f"c{before + place}", criterion, _text(check, criterion, subject))
                for place, criterion in enumerate(_criteria(check), start=1)
            ]
        )
    return lines


def _criteria(check: Check) -> Sequence[Criterion]:
    if check.rubric is not None:
        return check.rubric.criteria
    return [Criterion(outcome=check.expected_output or "")]


def _text(check: Check, criterion: Criterion, subject: ReadSubject) -> str:
    if check.rubric is not None:
        return "\n   ".join(criterion.outcome.strip().splitlines())
    label = subject.last_answer_label()
    reference = "\n".join(f"   | {line}" for line in criterion.outcome.splitlines())
    return SAME_MEANING.format(answer=label[:1].upper() + label[1:], reference=reference)


def question_about(lines: Sequence[CriterionLine], subject: ReadSubject) -> JudgePrompt:
    """One question about all of `lines`."""
    ids = ", ".join(line.id for line in lines)
    return JudgePrompt(
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


# Check results out of what a model said.

LONGEST_REASON = 500


def result_of(
    check: Check,
    subject: ReadSubject,
    role: CheckRole,
    *,
    passed: bool,
    score: float,
    found: str = "",
    excerpt: str = "",
    error: str | None = None,
    notes: Sequence[str] = (),
    children: Sequence[CheckResult] = (),
    stability: Stability = Stability(),  # noqa: B008 - it is immutable
) -> CheckResult:
    """The result of `check`. With an `error` it neither passes nor says what was found."""
    key, spec = key_and_spec(check)
    wanted = expected(key, spec)
    result = CheckResult(
        name=check.name or title(key, wanted, check),
        kind=key,
        passed=passed and error is None,
        score=0.0 if error is not None else round(score, 6),
        weight=check.weight,
        required=check.required,
        scope=subject.scope,
        role=role,
        expected=wanted,
        found="" if error is not None else found,
        excerpt="" if error is not None else excerpt,
        error=error,
        notes=list(dict.fromkeys(notes)),
        children=list(children),
    )
    return stability.on(result)


def part_result(
    name: str,
    kind: str,
    tally: VoteCount,
    material: Material,
    subject: ReadSubject,
    role: CheckRole,
    *,
    weight: float = 1.0,
    required: bool = False,
    wanted: str = "",
) -> CheckResult:
    """The result of one criterion, aspect or window, its quotation looked up."""
    # That an answer is not off the subject is nothing to quote.
    excerpt, notes = evidence_of(tally, material, supported=kind != "window")
    result = CheckResult(
        name=name,
        kind=kind,
        passed=tally.passed and tally.error is None,
        score=0.0 if tally.error is not None else tally.score,
        weight=weight,
        required=required,
        scope=subject.scope,
        role=role,
        expected=wanted,
        found="" if tally.error is not None else said(tally.reason),
        excerpt=excerpt,
        error=tally.error,
        notes=notes,
    )
    return tally.stability.on(result)


def evidence_of(
    tally: VoteCount, material: Material, *, supported: bool = True
) -> tuple[str, list[str]]:
    """The quotation with its speaker, and the note that it is not there or supports nothing."""
    if tally.error is not None:
        return "", []
    return evidence_in(tally.quote, material.parts, passed=tally.passed and supported)


def said(reason: str) -> str:
    """A judge's reason, on one line, harmless to a terminal."""
    return beginning(reason, LONGEST_REASON)


async def read_criteria(
    checks: Sequence[Check], subject: ReadSubject, role: CheckRole, asking: Asking
) -> list[CheckResult]:
    """A result for each of `checks` (`rubric`, `expected_output`), all asked in one question.

    A rubric with a `prompt` of its own must come alone.
    """
    lines = lines_of(checks, subject)
    material = material_of(subject.shown, subject.setting)
    asked = [line for group in lines for line in group]
    own = checks[0].rubric.prompt if checks[0].rubric is not None else None
    prompt = assembled(question_about(asked, subject), material, subject.judged, own)
    samples = await asking.ask(prompt, RubricAnswer, [line.id for line in asked])
    votes = {line.id: [vote_on(sample, line.id) for sample in samples] for line in asked}
    notes = [*material.notes, *unasked(samples, set(votes))]
    return [
        _result(check, group, votes, material, subject, role, notes)
        for check, group in zip(checks, lines, strict=True)
    ]


def _result(
    check: Check,
    lines: Sequence[CriterionLine],
    votes: Mapping[str, Sequence[Vote]],
    material: Material,
    subject: ReadSubject,
    role: CheckRole,
    notes: Sequence[str],
) -> CheckResult:
    tallies = [by_majority(votes[line.id]) for line in lines]
    children = [
        _child(line, tally, material, subject, role)
        for line, tally in zip(lines, tallies, strict=True)
    ]
    error = next((child.error for child in children if child.error is not None), None)
    if len(lines) == 1 and lines[0].criterion.id is None:
        # A single line is its own result: a child would only say everything twice.
        (child,), (tally,) = children, tallies
        return result_of(
            check, subject, role, passed=child.passed, score=child.score, found=child.found,
            excerpt=child.excerpt, error=error, stability=tally.stability,
            notes=[*notes, *(n for n in child.notes if n not in tally.stability.notes)],
        )  # fmt: skip
    threshold = check.rubric.threshold if check.rubric is not None else 1.0
    score = weighted_mean(children)
    passed = _passes(children, threshold)
    excerpt = next((c.excerpt for c in children if c.excerpt and c.passed == passed), "")
    stability = _stability(lines, children, votes, threshold, passed)
    return result_of(
        check, subject, role, passed=passed, score=score, found=_found(children), excerpt=excerpt,
        error=error, notes=notes, children=children, stability=stability,
    )  # fmt: skip


def _found(children: Sequence[CheckResult]) -> str:
    if len(children) == 1:
        return children[0].found
    met = sum(child.passed for child in children)
    unmet = [f"{child.name}: {child.found}" for child in children if not child.passed]
    return "; ".join([f"{met} of {len(children)} criteria met", *unmet])


def _child(
    line: CriterionLine, tally: VoteCount, material: Material, subject: ReadSubject, role: CheckRole
) -> CheckResult:
    criterion = line.criterion
    name = criterion.id or one_line(criterion.outcome.strip())
    return part_result(
        name, "criterion", tally, material, subject, role,
        weight=criterion.weight, required=criterion.required, wanted=criterion.outcome,
    )  # fmt: skip


def _passes(children: Sequence[CheckResult], threshold: float) -> bool:
    required = all(child.passed for child in children if child.required)
    return required and reaches(weighted_mean(children), threshold)


def _stability(
    lines: Sequence[CriterionLine],
    children: Sequence[CheckResult],
    votes: Mapping[str, Sequence[Vote]],
    threshold: float,
    passed: bool,
) -> Stability:
    """The whole check as each of the answers would have had it."""
    wholes = []
    for row in zip(*(votes[line.id] for line in lines), strict=True):
        error = next((vote.error for vote in row if vote.error is not None), None)
        if error is not None:
            wholes.append(no_vote(error))
            continue
        alone = [
            child.model_copy(update={"passed": vote.passed, "score": vote.score})
            for child, vote in zip(children, row, strict=True)
        ]
        wholes.append(Vote(weighted_mean(alone), _passes(alone, threshold)))
    return stability_of(wholes, passed)
