"""From a run's grades, as they come, to all that they say together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean
from typing import Any

from skillup.analysis.observation import Observation, observed
from skillup.analysis.reliability import rate_of, reliability
from skillup.analysis.triggering import triggering
from skillup.analysis.uplift import uplifts
from skillup.executors.early_stopping import threshold_of
from skillup.history.runs import WITH_SKILL, CaseKey, planned_key
from skillup.schema.analysis import Analysis, Decision, EngineColumn, Overall
from skillup.schema.grade import Grade, RunResult
from skillup.stats.paired import interval_over_cases
from skillup.stats.sequential import ERROR_RATE, decide

# The run's pass rate, and how sure it is where cases were held several times.


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


# Engines side by side: each over all cases of a suite, with the skill.


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


# What the sequential test of `--until-decided` came to, case by case.


def decision_of(
    key: CaseKey, trials: Sequence[Observation], saved: int, run_info: Mapping[str, Any]
) -> Decision | None:
    """The decision on a case; None: the run did not ask for any, or there is no verdict.

    Also None where suites of the same name have a case of the same id: grades do not tell them
    apart, and the run decided each by itself.
    """
    request = run_info.get("request") or {}
    if len({trial.trial for trial in trials}) < len(trials):
        return None
    # As in the run: up to the first trial that is missing, since what is slow is missing first.
    unbroken = [trial for number, trial in enumerate(trials, start=1) if trial.trial == number]
    verdicts = [trial.passed for trial in unbroken if trial.is_verdict]
    if not request.get("until_decided") or not verdicts:
        return None
    threshold = threshold_of(key.suite, run_info)
    verdict = decide(verdicts, threshold, ERROR_RATE)
    return Decision(
        verdict=verdict.side,
        threshold=threshold,
        error_rate=ERROR_RATE,
        trials=verdict.trials,
        saved=saved,
    )


CONFIDENCE = 0.95


def analyse(result: RunResult, run_info: Mapping[str, Any]) -> Analysis:
    """What the trials of `result` say together; `run_info` is what `run.json` holds.

    Of `run_info` only `suites` and `request` are looked at; without them gates, distractors and
    sequential tests are not known, and the rest is.
    """
    seen = Observations()
    for grade in result.cases:
        seen.add(grade)
    return seen.analysis(run_info, not_run=result.not_run, not_needed=result.not_needed)


def with_analysis(result: RunResult, run_info: Mapping[str, Any]) -> RunResult:
    """`result` with its analysis; one that has it already stays as it is."""
    if result.analysis is not None:
        return result
    return result.model_copy(update={"analysis": analyse(result, run_info)})


class Observations:
    """Takes grades one at a time and keeps only what counts of each."""

    def __init__(self) -> None:
        self._groups: dict[CaseKey, list[Observation]] = {}

    def add(self, grade: Grade) -> None:
        """One more trial."""
        trial = observed(grade)
        self._groups.setdefault(trial.key, []).append(trial)

    def analysis(
        self,
        run_info: Mapping[str, Any],
        *,
        not_run: Iterable[str] = (),
        not_needed: Iterable[str] = (),
    ) -> Analysis:
        """All of it, in the order of the plan; `not_run` and `not_needed` are ids of jobs."""
        suites: Mapping[str, Any] = run_info.get("suites") or {}
        missing = _counted(not_run, suites)
        saved = _counted(not_needed, suites)
        groups = {
            key: sorted(self._groups.get(key, ()), key=lambda trial: trial.trial)
            for key in _in_order([*self._groups, *missing, *saved], suites)
        }
        trials = [trial for group in groups.values() for trial in group]
        return Analysis(
            confidence=CONFIDENCE,
            overall=overall(trials, CONFIDENCE),
            cases=[
                reliability(
                    key,
                    group,
                    not_run=missing.get(key, 0),
                    decision=decision_of(key, group, saved.get(key, 0), run_info),
                    confidence=CONFIDENCE,
                    suites=suites,
                )
                for key, group in groups.items()
            ],
            uplift=uplifts(groups, CONFIDENCE),
            triggering=triggering(trials, suites),
            engines=engine_columns(trials, CONFIDENCE),
        )


def _counted(jobs: Iterable[str], suites: Mapping[str, Any]) -> dict[CaseKey, int]:
    counts: dict[CaseKey, int] = {}
    for job in jobs:
        key, _ = planned_key(job, suites)
        counts[key] = counts.get(key, 0) + 1
    return counts


def _in_order(keys: Iterable[CaseKey], suites: Mapping[str, Any]) -> list[CaseKey]:
    """Each key once, as planned: `run.json` lists suites and cases in that order."""
    once = list(dict.fromkeys(keys))
    places: dict[tuple[str, str], int] = {}
    for name, about in suites.items():
        for case_id in (about.get("cases") or {}).values():
            places.setdefault((name, str(case_id)), len(places))
    for key in once:
        places.setdefault((key.suite, key.case_id), len(places))
    engines = list(dict.fromkeys(key.engine for key in once))
    variants = sorted({key.variant for key in once})  # with_skill comes first
    return sorted(
        once,
        key=lambda key: (
            places[key.suite, key.case_id],
            engines.index(key.engine),
            variants.index(key.variant),
        ),
    )
