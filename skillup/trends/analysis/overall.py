"""The run's pass rate, and how sure it is where cases were held several times."""

from __future__ import annotations

from collections.abc import Iterable

from skillup.schema.analysis import Overall
from skillup.trends.analysis.observation import Observation
from skillup.trends.outcomes import WITH_SKILL
from skillup.trends.statistics.clusters import interval_over_cases


def overall(trials: Iterable[Observation], confidence: float) -> Overall | None:
    """Of the verdicts with the skill; None: there is none. A case on several engines is one."""
    cases: dict[tuple[str, str], list[bool]] = {}
    for trial in trials:
        if trial.is_verdict and trial.key.variant == WITH_SKILL:
            cases.setdefault((trial.key.suite, trial.key.case_id), []).append(trial.passed)
    counts = [(sum(held), len(held)) for held in cases.values()]
    interval = interval_over_cases(counts, confidence)
    if interval is None:
        return None
    passed, held = (sum(numbers) for numbers in zip(*counts, strict=True))
    return Overall(
        passed=passed,
        held=held,
        rate=passed / held,
        low=interval.low,
        high=interval.high,
        cases=len(cases),
    )
