"""Check results out of what a model said."""

from __future__ import annotations

from collections.abc import Sequence

from skillup.checks.describe import expected, key_and_spec, title
from skillup.checks.evidence import beginning
from skillup.judges.reading.evidence import evidence_in
from skillup.judges.reading.material import Material
from skillup.judges.reading.subject import Subject
from skillup.judges.reading.votes import Stability, Tally
from skillup.schema.checks import Check
from skillup.schema.grade import CheckResult, CheckRole

LONGEST_REASON = 500


def result_of(
    check: Check,
    subject: Subject,
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
    tally: Tally,
    material: Material,
    subject: Subject,
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
    tally: Tally, material: Material, *, supported: bool = True
) -> tuple[str, list[str]]:
    """The quotation with its speaker, and the note that it is not there or supports nothing."""
    if tally.error is not None:
        return "", []
    return evidence_in(tally.quote, material.parts, passed=tally.passed and supported)


def said(reason: str) -> str:
    """A judge's reason, on one line, harmless to a terminal."""
    return beginning(reason, LONGEST_REASON)
