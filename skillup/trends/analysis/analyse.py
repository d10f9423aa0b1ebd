"""From a run's grades, as they come, to all that they say together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from skillup.schema.analysis import Analysis
from skillup.schema.grade import Grade, RunResult
from skillup.trends.analysis.deciding import decision_of
from skillup.trends.analysis.engines import engine_columns
from skillup.trends.analysis.observation import Observation, observed
from skillup.trends.analysis.overall import overall
from skillup.trends.analysis.reliability import reliability
from skillup.trends.analysis.triggering import triggering
from skillup.trends.analysis.uplift import uplifts
from skillup.trends.outcomes import CaseKey
from skillup.trends.planned import planned_key

CONFIDENCE = 0.95


def analyse(result: RunResult, run_info: Mapping[str, Any]) -> Analysis:
    """What the trials of `result` say together; `run_info` is what `run.json` holds.

    Of `run_info` only `suites` and `request` are looked at; without them ({}) gates, neighbours and
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
        known = {key.suite for key in self._groups}
        missing = _counted(not_run, suites, known)
        saved = _counted(not_needed, suites, known)
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


def _counted(
    jobs: Iterable[str], suites: Mapping[str, Any], known: Iterable[str]
) -> dict[CaseKey, int]:
    counts: dict[CaseKey, int] = {}
    named = set(known)
    for job in jobs:
        key, _ = planned_key(job, suites, named)
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
