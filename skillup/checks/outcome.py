"""What a turn with follow-ups comes to: the checks of any level will do.

The record has the follow-ups that were held; the case says which checks are asked of each answer.
Live (`on_turn_failure`) and afterwards (grading) the same rules apply.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from skillup.checks.context import CheckContext
from skillup.checks.levels import evaluate_level
from skillup.checks.scoring import weighted_mean
from skillup.schema.checks import Check
from skillup.schema.grade import CheckResult
from skillup.schema.record import TurnRecord

_ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth")


@dataclass(frozen=True, slots=True)
class Level:
    """One follow-up's answer and the results of its checks."""

    label: str
    answer: TurnRecord
    results: tuple[CheckResult, ...]

    @property
    def passed(self) -> bool:
        """All of its own checks passed; a follow-up that is no longer in the case has none."""
        return bool(self.results) and all(result.passed for result in self.results)

    @property
    def score(self) -> float:
        """The weighted mean of its checks."""
        return weighted_mean(self.results) if self.results else 0.0


_NO_LEVELS: tuple[Level, ...] = ()


@dataclass(frozen=True, slots=True)
class TurnOutcome:
    """The first answer's results, and those of its follow-ups in the order they were held."""

    results: tuple[CheckResult, ...]
    levels: tuple[Level, ...]

    @property
    def passed_on(self) -> str | None:
        """The label of the follow-up that the turn passed on; None: there is none."""
        if not self.levels or all(result.passed for result in self.results):
            return None
        return next((level.label for level in self.levels if level.passed), None)

    @property
    def score(self) -> float:
        """Of the answer that the turn passed on; else its first answer's."""
        label = self.passed_on
        if label is None:
            return weighted_mean(self.results)
        return next(level.score for level in self.levels if level.label == label)


def judge_turn(checks: Sequence[Check], turn: TurnRecord, context: CheckContext) -> TurnOutcome:
    """`turn` and its follow-ups, judged by the turn's `checks` and those nested in them.

    `context` is the conversation's.
    """
    results = evaluate_level(checks, context.about(turn))
    if not turn.follow_ups:
        return TurnOutcome(tuple(results), _NO_LEVELS)
    levels = tuple(
        Level(
            label=_ordinal(number),
            answer=answer,
            results=tuple(evaluate_level(nested, context.about(answer))),
        )
        for number, (answer, nested) in enumerate(_answers(checks, turn), start=1)
    )
    return TurnOutcome(tuple(results), levels)


def _answers(
    checks: Sequence[Check], turn: TurnRecord
) -> Iterator[tuple[TurnRecord, Sequence[Check]]]:
    """Every follow-up and the checks that its answer is asked, in the order they were held."""
    for answer in turn.follow_ups:
        place = answer.asked_by[-1]
        nested = checks[place].assertions if place < len(checks) else None
        yield answer, nested or []
        yield from _answers(nested or [], answer)


def _ordinal(number: int) -> str:
    word = _ORDINALS[number - 1] if number <= len(_ORDINALS) else f"{number}th"
    return f"{word} follow-up"
