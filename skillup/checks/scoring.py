"""From check results to scores, 0..1, and what decides (docs/verdicts.md)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

from skillup.schema.grade import CheckResult

Aggregation = Literal["mean", "min", "max"]


def weighted_mean(results: Sequence[CheckResult]) -> float:
    """The weighted mean of the scores; 1.0 without checks, 0.0 if a required one failed.

    If every weight is 0 the checks only inform: the score is 1.0.
    """
    if any(result.required and not result.passed for result in results):
        return 0.0
    total = sum([result.weight for result in results])
    if not total:
        return 1.0
    return sum([result.weight * result.score for result in results]) / total


def aggregate(scores: Iterable[float], how: Aggregation) -> float:
    """One score of several; 1.0 of none."""
    values = list(scores)
    if not values:
        return 1.0
    if how == "min":
        return min(values)
    if how == "max":
        return max(values)
    return sum(values) / len(values)


def reaches(score: float, threshold: float) -> bool:
    """Whether `score` is at least `threshold`, but for the rounding of sums."""
    return score >= threshold - 1e-9


def unmet(results: Iterable[CheckResult]) -> list[CheckResult]:
    """The checks that failed and count: one that weighs nothing only informs, unless required."""
    return [r for r in results if not r.passed and r.evaluated and (r.weight or r.required)]


def speaks_for_it(results: Iterable[CheckResult]) -> bool:
    """Whether one that weighs something has passed: without that nothing is a success."""
    return any(result.passed and result.weight for result in results)
