"""From a run's grades, as they come, to all that they say together: ``schema.analysis``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from skillup.analysis.observation import Observation, ObservedTurn, observed
from skillup.analysis.uplift import mean_known, rate_of, uplifts
from skillup.executors.early_stopping import threshold_of
from skillup.history.runs import WITH_SKILL, CaseKey, planned_key
from skillup.schema.analysis import (
    Analysis,
    AtK,
    CaseReliability,
    Decision,
    EngineColumn,
    Overall,
    Triggering,
    TurnReliability,
)
from skillup.schema.grade import Grade, RunResult
from skillup.stats.paired import interval_over_cases
from skillup.stats.proportions import at_each_k
from skillup.stats.sequential import ERROR_RATE, decide

CONFIDENCE = 0.95


def analyse(result: RunResult, run_info: Mapping[str, Any]) -> Analysis:
    """What the trials of `result` say together; `run_info` is what `run.json` has.

    Of `run_info` only `suites` and `request` matter; without them ({}) gates, distractors,
    sequential tests and the suites of trials that did not run are not known, and the rest is.
    """
    observations = Observations()
    for grade in result.cases:
        observations.add(grade)
    return observations.analysis(run_info, not_run=result.not_run, not_needed=result.not_needed)


def with_analysis(result: RunResult, run_info: Mapping[str, Any]) -> RunResult:
    """`result` with its analysis; one that has it already stays as it is."""
    if result.analysis is not None:
        return result
    return result.model_copy(update={"analysis": analyse(result, run_info)})


class Observations:
    """Takes grades one at a time and keeps only what counts of each, for runs of any size."""

    def __init__(self) -> None:
        self._groups: dict[CaseKey, list[Observation]] = {}

    def add(self, grade: Grade) -> None:
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
        missing = Counter(planned_key(job, suites)[0] for job in not_run)
        saved = Counter(planned_key(job, suites)[0] for job in not_needed)
        groups = {
            key: sorted(self._groups.get(key, ()), key=lambda trial: trial.trial)
            for key in _in_order([*self._groups, *missing, *saved], suites)
        }
        with_skill = [t for group in groups.values() for t in group if t.key.variant == WITH_SKILL]
        return Analysis(
            confidence=CONFIDENCE,
            overall=_overall(with_skill),
            cases=[
                _reliability(key, group, missing[key], saved[key], run_info)
                for key, group in groups.items()
            ],
            uplift=uplifts(groups, CONFIDENCE),
            triggering=_triggering(with_skill, suites),
            engines=_engine_columns(with_skill),
        )


def _in_order(keys: Iterable[CaseKey], suites: Mapping[str, Any]) -> list[CaseKey]:
    """Each key once, as planned: `run.json` lists suites and cases in that order."""
    once = list(dict.fromkeys(keys))
    planned = [
        (name, str(case_id))
        for name, about in suites.items()
        for case_id in (about.get("cases") or {}).values()
    ]
    cases = list(dict.fromkeys([*planned, *(key[:2] for key in once)]))
    places = {case: place for place, case in enumerate(cases)}
    engines = list(dict.fromkeys(key.engine for key in once))
    # Of variants, with_skill sorts first.
    return sorted(once, key=lambda k: (places[k[:2]], engines.index(k.engine), k.variant))


def _overall(trials: Iterable[Observation]) -> Overall | None:
    """The run's pass rate, with the skill. A case on several engines is one."""
    cases: dict[tuple[str, str], list[bool]] = {}
    for trial in trials:
        if trial.is_verdict:
            cases.setdefault(trial.key[:2], []).append(trial.passed)
    counts = [(sum(passes), len(passes)) for passes in cases.values()]
    interval = interval_over_cases(counts, CONFIDENCE)
    if interval is None:
        return None
    passed, verdicts = map(sum, zip(*counts, strict=True))
    low, high = interval
    return Overall(
        passed=passed, held=verdicts, rate=passed / verdicts, low=low, high=high, cases=len(cases)
    )


def _engine_columns(trials: Iterable[Observation]) -> list[EngineColumn]:
    """Each suite on each engine, with the skill, in the order in which they come."""
    groups: dict[tuple[str, str], list[Observation]] = {}
    for trial in trials:
        groups.setdefault((trial.key.suite, trial.key.engine), []).append(trial)
    columns = []
    for (suite, engine), group in groups.items():
        verdicts = [trial for trial in group if trial.is_verdict]
        passed = sum(trial.passed for trial in verdicts)
        columns.append(
            EngineColumn(
                suite=suite,
                engine=engine,
                rate=rate_of(passed, len(verdicts), CONFIDENCE),
                error=sum(trial.status == "ERROR" for trial in group),
                score=mean_known(trial.score for trial in verdicts),
                turns=mean_known(len(trial.turns) for trial in verdicts),
                tokens=mean_known(trial.tokens for trial in verdicts),
                cost_usd=mean_known(trial.cost_usd for trial in verdicts),
                duration_ms=mean_known(trial.duration_ms for trial in verdicts),
            )
        )
    return columns


# How often each case passes, as a whole and turn by turn.


def _reliability(
    key: CaseKey,
    trials: Sequence[Observation],
    not_run: int,
    saved: int,
    run_info: Mapping[str, Any],
) -> CaseReliability:
    verdicts = [trial for trial in trials if trial.is_verdict]
    passed = sum(trial.passed for trial in verdicts)
    numbers = sorted({turn.number for trial in verdicts for turn in trial.turns})
    suites = run_info.get("suites") or {}
    return CaseReliability(
        **key._asdict(),
        rate=rate_of(passed, len(verdicts), CONFIDENCE),
        error=sum(trial.status == "ERROR" for trial in trials),
        skip=sum(trial.status == "SKIP" for trial in trials),
        not_run=not_run,
        flaky=0 < passed < len(verdicts),
        at_k=_at_k(passed, len(verdicts)),
        turns=[_turn(number, verdicts, suites) for number in numbers],
        decision=_decision(key, trials, saved, run_info),
    )


def _at_k(passed: int, held: int) -> list[AtK]:
    return [AtK(**one._asdict()) for one in at_each_k(passed, held)]


def _turn(
    number: int, verdicts: Sequence[Observation], suites: Mapping[str, Any]
) -> TurnReliability:
    # Where trials share a turn, it was run once, and counts once.
    turns: dict[tuple[CaseKey, int], ObservedTurn] = {}
    for trial in verdicts:
        for turn in trial.turns:
            if turn.number == number:
                owner = (trial.key, trial.trial)
                if turn.held_by is not None:
                    owner = planned_key(turn.held_by, suites)
                turns.setdefault(owner, turn)
    passed = sum(turn.passed for turn in turns.values())
    firsts = [trial.first_failed_turn for trial in verdicts]
    unfailed = sum(first is None or first > number for first in firsts)
    return TurnReliability(
        turn_number=number,
        rate=rate_of(passed, len(turns), CONFIDENCE),
        at_k=_at_k(passed, len(turns)),
        first_failures=firsts.count(number),
        unfailed=unfailed / len(firsts),
    )


def _decision(
    key: CaseKey, trials: Sequence[Observation], saved: int, run_info: Mapping[str, Any]
) -> Decision | None:
    """What `--until-decided` decided; None: it was not asked for, or there is no verdict.

    Also None where suites of the same name have a case of the same id: grades do not tell them
    apart, and the run decided each by itself.
    """
    numbers = [trial.trial for trial in trials]
    # As in the run: up to the first trial that is missing, since what is slow is missing first.
    unbroken = [trial for place, trial in enumerate(trials, start=1) if trial.trial == place]
    verdicts = [trial.passed for trial in unbroken if trial.is_verdict]
    asked = (run_info.get("request") or {}).get("until_decided")
    if not asked or not verdicts or len(set(numbers)) < len(numbers):
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


# Whether skills are used when they should be, and only then.


def _triggering(trials: Iterable[Observation], suites: Mapping[str, Any]) -> list[Triggering]:
    """Each suite, engine and skill, from trials with the skill that have a verdict."""
    uses: dict[tuple[str, str, str], Counter[tuple[bool, bool]]] = {}
    spelled: dict[str, str] = {}
    for trial in trials:
        for skill, expected, used in trial.skills:
            spelled.setdefault(skill.casefold(), skill)
            place = (trial.key.suite, trial.key.engine, skill.casefold())
            uses.setdefault(place, Counter())[expected, used] += 1
    found = []
    for (suite, engine, name), counts in uses.items():
        hits, misses = counts[True, True], counts[True, False]
        false, rest = counts[False, True], counts[False, False]
        about = suites.get(suite) or {}
        installed = [str(n) for key in ("skills", "distractors") for n in about.get(key) or ()]
        found.append(
            Triggering(
                suite=suite,
                engine=engine,
                skill=spelled[name],
                used_rightly=hits,
                not_used_wrongly=misses,
                used_wrongly=false,
                not_used_rightly=rest,
                precision=hits / (hits + false) if hits + false else None,
                recall=hits / (hits + misses) if hits + misses else None,
                # 2PR/(P+R), written so that it is 0 where nothing was right.
                f1=2 * hits / (2 * hits + misses + false) if hits + misses else None,
                distractors=[one for one in installed if one.casefold() != name],
            )
        )
    return found
