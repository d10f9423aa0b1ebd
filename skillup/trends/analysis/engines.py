"""Engines side by side: each over all cases of a suite, with the skill."""

from __future__ import annotations

from collections.abc import Iterable
from statistics import fmean

from skillup.schema.analysis import EngineColumn
from skillup.trends.analysis.observation import Observation
from skillup.trends.analysis.reliability import rate_of
from skillup.trends.outcomes import WITH_SKILL


def engine_columns(trials: Iterable[Observation], confidence: float) -> list[EngineColumn]:
    """In the order in which suites and engines come."""
    groups: dict[tuple[str, str], list[Observation]] = {}
    for trial in trials:
        if trial.key.variant == WITH_SKILL:
            groups.setdefault((trial.key.suite, trial.key.engine), []).append(trial)
    return [_column(*place, group, confidence) for place, group in groups.items()]


def _column(suite: str, engine: str, trials: list[Observation], confidence: float) -> EngineColumn:
    verdicts = [trial for trial in trials if trial.is_verdict]
    return EngineColumn(
        suite=suite,
        engine=engine,
        rate=rate_of(sum(trial.passed for trial in verdicts), len(verdicts), confidence),
        error=sum(trial.status == "ERROR" for trial in trials),
        score=_mean([trial.score for trial in verdicts]),
        turns=_mean([len(trial.turns) for trial in verdicts]),
        tokens=_mean([trial.tokens for trial in verdicts]),
        cost_usd=_mean([trial.cost_usd for trial in verdicts]),
        duration_ms=_mean([trial.duration_ms for trial in verdicts]),
    )


def _mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return fmean(known) if known else None
