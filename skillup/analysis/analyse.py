"""From a run's grades, as they come, to all that they say together: ``schema.result``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from skillup.analysis.triggering import triggering
from skillup.analysis.uplift import mean_known, rate_of, tokens_of, turns_of, uplifts
from skillup.executors.early_stopping import threshold_of
from skillup.history.runs import VERDICTS, WITH_SKILL, CaseKey, key_of, planned_key
from skillup.schema.grade import Grade, TurnGrade
from skillup.schema.result import (
    Analysis,
    AtK,
    CaseReliability,
    Decision,
    EngineColumn,
    Overall,
    RunResult,
    TurnReliability,
)
from skillup.stats.paired import interval_over_cases
from skillup.stats.proportions import at_each_k
from skillup.stats.sequential import ERROR_RATE, decide


def analyse(
    grades: Iterable[Grade],
    run_info: Mapping[str, Any],
    *,
    not_run: Iterable[str] = (),
    not_needed: Iterable[str] = (),
) -> Analysis:
    """What `grades` say together, in the order of the plan; `run_info` is what `run.json` has.

    `not_run` and `not_needed` are ids of jobs. Of `run_info` only `suites` and `request` matter;
    without them ({}) gates, distractors, sequential tests and the suites of trials that did not
    run are not known, and the rest is.
    """
    own: dict[CaseKey, list[Grade]] = {}
    for grade in grades:
        own.setdefault(key_of(grade), []).append(grade)
    suites: Mapping[str, Any] = run_info.get("suites") or {}
    missing = Counter(planned_key(job, suites)[0] for job in not_run)
    saved = Counter(planned_key(job, suites)[0] for job in not_needed)
    groups = {
        key: sorted(own.get(key, ()), key=lambda trial: trial.trial)
        for key in _in_order([*own, *missing, *saved])
    }
    with_skill = [t for group in groups.values() for t in group if t.variant == WITH_SKILL]
    verdicts = [trial for trial in with_skill if trial.status in VERDICTS]
    return Analysis(
        overall=_overall(verdicts),
        cases=[
            _reliability(key, group, missing[key], saved[key], run_info)
            for key, group in groups.items()
        ],
        uplift=uplifts(groups),
        triggering=triggering(verdicts, suites),
        engines=_engine_columns(with_skill),
    )


def with_analysis(result: RunResult, run_info: Mapping[str, Any]) -> RunResult:
    """`result` with its analysis; one that has it already stays as it is."""
    if result.analysis is not None:
        return result
    analysis = analyse(result.cases, run_info, not_run=result.not_run, not_needed=result.not_needed)
    return result.model_copy(update={"analysis": analysis})


def _in_order(keys: Iterable[CaseKey]) -> list[CaseKey]:
    """Each key once: cases and engines as they first come, with the skill before without."""
    once = list(dict.fromkeys(keys))
    cases = {case: n for n, case in enumerate(dict.fromkeys(key[:2] for key in once))}
    engines = list(dict.fromkeys(key.engine for key in once))
    return sorted(once, key=lambda k: (cases[k[:2]], engines.index(k.engine), k.variant))


def _overall(trials: Iterable[Grade]) -> Overall | None:
    """The run's pass rate, with the skill. A case on several engines is one."""
    cases: dict[tuple[str, str], list[bool]] = {}
    for trial in trials:
        cases.setdefault((trial.suite, trial.case_id), []).append(trial.status == "PASS")
    counts = [(sum(passes), len(passes)) for passes in cases.values()]
    interval = interval_over_cases(counts)
    if interval is None:
        return None
    passed, verdicts = map(sum, zip(*counts, strict=True))
    low, high = interval
    return Overall(
        passed=passed, judged=verdicts, rate=passed / verdicts, low=low, high=high, cases=len(cases)
    )


def _engine_columns(trials: Iterable[Grade]) -> list[EngineColumn]:
    """Each suite on each engine, with the skill, in the order in which they come."""
    groups: dict[tuple[str, str], list[Grade]] = {}
    for trial in trials:
        groups.setdefault((trial.suite, trial.engine), []).append(trial)

    def column(suite: str, engine: str, own: Sequence[Grade]) -> EngineColumn:
        verdicts = [trial for trial in own if trial.status in VERDICTS]
        return EngineColumn(
            suite=suite,
            engine=engine,
            rate=rate_of(sum(trial.status == "PASS" for trial in verdicts), len(verdicts)),
            error=sum(trial.status == "ERROR" for trial in own),
            score=mean_known(trial.score for trial in verdicts),
            turns=mean_known(len(turns_of(trial)) for trial in verdicts),
            tokens=mean_known(map(tokens_of, verdicts)),
            cost_usd=mean_known(trial.cost_usd for trial in verdicts),
            duration_ms=mean_known(trial.duration_ms for trial in verdicts),
        )

    return [column(*place, own) for place, own in groups.items()]


# How often each case passes, as a whole and turn by turn.


def _reliability(
    key: CaseKey, trials: Sequence[Grade], not_run: int, saved: int, run_info: Mapping[str, Any]
) -> CaseReliability:
    verdicts = [trial for trial in trials if trial.status in VERDICTS]
    passed = sum(trial.status == "PASS" for trial in verdicts)
    numbers = sorted({turn.turn_number for trial in verdicts for turn in turns_of(trial)})
    suites = run_info.get("suites") or {}
    return CaseReliability(
        **key._asdict(),
        rate=rate_of(passed, len(verdicts)),
        error=sum(trial.status == "ERROR" for trial in trials),
        skip=sum(trial.status == "SKIP" for trial in trials),
        not_run=not_run,
        flaky=0 < passed < len(verdicts),
        at_k=_at_k(passed, len(verdicts)),
        turns=[_turn(number, verdicts, suites) for number in numbers],
        decision=_decision(key, trials, saved, run_info),
    )


def _at_k(passed: int, trials: int) -> list[AtK]:
    found = at_each_k(passed, trials)
    return [AtK(k=k, pass_at_k=some, pass_hat_k=every) for k, some, every in found]


def _turn(number: int, verdicts: Sequence[Grade], suites: Mapping[str, Any]) -> TurnReliability:
    # Where trials share a turn, it was run once, and counts once.
    turns: dict[tuple[CaseKey, int], TurnGrade] = {}
    for trial in verdicts:
        for turn in turns_of(trial):
            if turn.turn_number == number:
                owner = (key_of(trial), trial.trial)
                if turn.counted_by is not None:
                    owner = planned_key(turn.counted_by, suites)
                turns.setdefault(owner, turn)
    passed = sum(map(_passed, turns.values()))
    firsts = [
        next((turn.turn_number for turn in turns_of(trial) if not _passed(turn)), None)
        for trial in verdicts
    ]
    unfailed = sum(first is None or first > number for first in firsts)
    return TurnReliability(
        turn_number=number,
        rate=rate_of(passed, len(turns)),
        at_k=_at_k(passed, len(turns)),
        first_failures=firsts.count(number),
        unfailed=unfailed / len(firsts),
    )


def _passed(turn: TurnGrade) -> bool:
    """It completed and all that was asked of it holds, however the case weighs that."""
    return turn.status == "completed" and all(check.passed for check in turn.deciding_checks())


def _decision(
    key: CaseKey, trials: Sequence[Grade], saved: int, run_info: Mapping[str, Any]
) -> Decision | None:
    """What `--until-decided` decided; None: it was not asked for, or there is no verdict."""
    # As in the run: up to the first trial that is missing, since what is slow is missing first.
    unbroken = [trial for place, trial in enumerate(trials, start=1) if trial.trial == place]
    verdicts = [trial.status == "PASS" for trial in unbroken if trial.status in VERDICTS]
    asked = (run_info.get("request") or {}).get("until_decided")
    if not asked or not verdicts:
        return None
    threshold = threshold_of(key.suite, run_info)
    side, count = decide(verdicts, threshold)
    return Decision(
        verdict=side, threshold=threshold, error_rate=ERROR_RATE, trials=count, saved=saved
    )
