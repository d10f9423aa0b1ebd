"""Rubrics, and the comparison with an expected output: criteria that a model finds met or not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from skillup.checks.evidence import one_line
from skillup.checks.scoring import reaches, weighted_mean
from skillup.judges.reading.asking import Asking
from skillup.judges.reading.criteria import (
    Line,
    RubricAnswer,
    lines_of,
    question_about,
    unasked,
    vote_on,
)
from skillup.judges.reading.material import Material, material_of
from skillup.judges.reading.prompt import assembled
from skillup.judges.reading.results import part_result, result_of
from skillup.judges.reading.subject import Subject
from skillup.judges.reading.votes import (
    Stability,
    Tally,
    Vote,
    by_majority,
    no_vote,
    stability_of,
)
from skillup.schema.checks import Check
from skillup.schema.grade import CheckResult, CheckRole


async def read_criteria(
    checks: Sequence[Check], subject: Subject, role: CheckRole, asking: Asking
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
    lines: Sequence[Line],
    votes: Mapping[str, Sequence[Vote]],
    material: Material,
    subject: Subject,
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
    line: Line, tally: Tally, material: Material, subject: Subject, role: CheckRole
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
    lines: Sequence[Line],
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
