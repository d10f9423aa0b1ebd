"""How often each case passes, as a whole and turn by turn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from skillup.analysis.observation import Observation, ObservedTurn
from skillup.history.runs import CaseKey, planned_key
from skillup.schema.analysis import AtK, CaseReliability, Decision, Rate, TurnReliability
from skillup.stats.proportions import at_each_k, wilson


def rate_of(passed: int, held: int, confidence: float) -> Rate:
    """`passed` of `held`, with Wilson's interval; nothing but the counts if none was held."""
    if not held:
        return Rate(passed=0, held=0, rate=None, low=None, high=None)
    low, high = wilson(passed, held, confidence)
    return Rate(passed=passed, held=held, rate=passed / held, low=low, high=high)


def at_k(passed: int, held: int) -> list[AtK]:
    """For each k that the trials can tell."""
    return [AtK(**told._asdict()) for told in at_each_k(passed, held)]


def reliability(
    key: CaseKey,
    trials: Sequence[Observation],
    *,
    not_run: int,
    decision: Decision | None,
    confidence: float,
    suites: Mapping[str, Any],
) -> CaseReliability:
    """All trials of one case; rates are over those with a verdict."""
    verdicts = [trial for trial in trials if trial.is_verdict]
    passed = sum(trial.passed for trial in verdicts)
    numbers = sorted({turn.number for trial in verdicts for turn in trial.turns})
    return CaseReliability(
        suite=key.suite,
        case_id=key.case_id,
        engine=key.engine,
        variant=key.variant,
        rate=rate_of(passed, len(verdicts), confidence),
        error=sum(trial.status == "ERROR" for trial in trials),
        skip=sum(trial.status == "SKIP" for trial in trials),
        not_run=not_run,
        flaky=0 < passed < len(verdicts),
        at_k=at_k(passed, len(verdicts)),
        turns=[_turn(number, key, verdicts, confidence, suites) for number in numbers],
        decision=decision,
    )


def _turn(
    number: int,
    key: CaseKey,
    verdicts: Sequence[Observation],
    confidence: float,
    suites: Mapping[str, Any],
) -> TurnReliability:
    held = _each_once(number, key, verdicts, suites)
    passed = sum(turn.passed for turn in held)
    firsts = [trial.first_failed_turn for trial in verdicts]
    unfailed = sum(first is None or first > number for first in firsts)
    return TurnReliability(
        turn_number=number,
        rate=rate_of(passed, len(held), confidence),
        at_k=at_k(passed, len(held)),
        first_failures=firsts.count(number),
        unfailed=unfailed / len(firsts),
    )


def _each_once(
    number: int, key: CaseKey, verdicts: Sequence[Observation], suites: Mapping[str, Any]
) -> list[ObservedTurn]:
    """The turn in each trial; where trials share it, it was held once, and counts once."""
    found: dict[tuple[CaseKey, int], ObservedTurn] = {}
    for trial in verdicts:
        for turn in trial.turns:
            if turn.number != number:
                continue
            owner = (key, trial.trial)
            if turn.held_by is not None:
                owner = planned_key(turn.held_by, suites)
            found.setdefault(owner, turn)
    return list(found.values())
