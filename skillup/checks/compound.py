"""Checks made of checks: what follows from the children's results."""

from __future__ import annotations

from collections.abc import Sequence

from skillup.checks.context import Finding, listed
from skillup.checks.scoring import weighted_mean
from skillup.schema.grade import CheckResult


def any_of(children: Sequence[CheckResult]) -> Finding:
    """At least one passes; one that passes outweighs another that could not be evaluated."""
    hit = next((child for child in children if child.passed), None)
    best = max((child.score for child in children), default=0.0)
    if hit is not None:
        return _finding(children, True, f"passed: {hit.name}", hit.excerpt, best)
    return _failed(children, "none passed", children, best)


def all_of(children: Sequence[CheckResult]) -> Finding:
    """Every one passes; the score is their weighted mean."""
    unmet = [child for child in children if not child.passed]
    score = weighted_mean(children)
    if unmet:
        return _failed(children, f"failed: {_names(unmet)}", unmet, score)
    return _finding(children, True, "all passed", children[0].excerpt, score)


def none_of(children: Sequence[CheckResult]) -> Finding:
    """Every one could be asked, and failed. What could not be asked proves nothing."""
    hits = [child for child in children if child.passed]
    if hits:
        return _failed(children, f"passed: {_names(hits)}", hits, 0.0)
    if all(child.assertable and child.error is None for child in children):
        return _finding(children, True, "none passed", children[0].excerpt, 1.0)
    return _failed(children, "", children, 0.0)


def _failed(
    children: Sequence[CheckResult], found: str, told: Sequence[CheckResult], score: float
) -> Finding:
    wrong = next((child for child in children if child.error is not None), None)
    if wrong is not None:
        error = f"{wrong.name}: {wrong.error}"
        told = tuple(children)
        return Finding(False, found, error=error, error_kind=wrong.error_kind, children=told)
    absent = next((child for child in children if not child.assertable), None)
    if absent is not None:
        found = f"{found}; {absent.found}" if found else absent.found
        return Finding(
            False,
            found,
            assertable=False,
            evaluated=absent.evaluated,
            score=score,
            children=tuple(children),
        )
    return _finding(children, False, found, told[0].excerpt, score)


def _finding(
    children: Sequence[CheckResult], passed: bool, found: str, excerpt: str, score: float
) -> Finding:
    return Finding(passed, found, excerpt, score=score, children=tuple(children))


def _names(children: Sequence[CheckResult]) -> str:
    return listed(child.name for child in children)
