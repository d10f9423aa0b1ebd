"""A turn's checks and their follow-ups: which checks stand at a level, and what is sent next.

A level is a list of checks and the answer they look at. Beside its checks it has follow-ups: a
check may carry one of its own, and a `prompt` may stand alone. When a check fails, the follow-ups
are taken in this order: those of failing checks, in the order of the checks, then those that stand
alone. Each answer is a level again. A level that passes heals what failed, but for required checks.
Live (`on_turn_failure`) and afterwards (grading) the same rules apply.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from skillup.checks.context import CheckContext
from skillup.checks.describe import FOLLOW_UP
from skillup.checks.evaluate import evaluate, prepared
from skillup.checks.scoring import speaks_for_it, unmet
from skillup.schema.checks import Check
from skillup.schema.grade import CheckResult, deciding
from skillup.schema.record import TurnRecord


def evaluate_level(checks: Sequence[Check], context: CheckContext) -> list[CheckResult]:
    """The results of the level's checks, in order; prompts that stand alone are none."""
    return [evaluate(check, context) for check in checks if not _stands_alone(check)]


def follow_ups(
    checks: Sequence[Check], results: Sequence[CheckResult]
) -> Iterator[tuple[int, Check]]:
    """What is sent next, in order, each with its place in `checks`; nothing if no check failed.

    `results` are those of :func:`evaluate_level`. A check that could not be evaluated sends
    nothing: that is trouble of ours, not the agent's.
    """
    own = [(place, check) for place, check in enumerate(checks) if not _stands_alone(check)]
    failed = [
        placed
        for placed, result in zip(own, results, strict=True)
        if not result.passed and result.error is None
    ]
    if failed:
        yield from ((place, check) for place, check in failed if check.prompt is not None)
        yield from ((n, check) for n, check in enumerate(checks) if _stands_alone(check))


def _stands_alone(check: Check) -> bool:
    """Whether it is a prompt without a check beside it."""
    return check.prompt is not None and prepared(check)[0].key == FOLLOW_UP


_ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth")


@dataclass(frozen=True, slots=True)
class Level:
    """One follow-up's answer and the results of its checks."""

    label: str
    answer: TurnRecord
    results: tuple[CheckResult, ...]


@dataclass(frozen=True, slots=True)
class TurnResult:
    """The first answer's results, and those of its follow-ups in the order they were sent."""

    results: tuple[CheckResult, ...]
    levels: tuple[Level, ...]

    @property
    def passed_on(self) -> str | None:
        """The label of the follow-up that the turn passed on; None: there is none."""
        if not unmet(self.results):
            return None
        every = [*self.results, *(r for level in self.levels for r in level.results)]
        if any(result.required and not result.passed for result in every):
            return None
        return next((level.label for level in self.levels if passes(level.results)), None)

    @property
    def deciding(self) -> list[CheckResult]:
        """The results that the turn passes or fails by."""
        levels = [(level.label, level.results) for level in self.levels]
        return deciding(self.results, levels, self.passed_on)


def passes(results: Sequence[CheckResult]) -> bool:
    """Whether a follow-up's own checks heal what failed before it."""
    return speaks_for_it(results) and not unmet(results)


def judge_turn(checks: Sequence[Check], turn: TurnRecord, context: CheckContext) -> TurnResult:
    """`turn` and its follow-ups, by the turn's `checks` and those nested in them.

    `context` is the conversation's.
    """
    levels = []
    for number, (answer, nested) in enumerate(_answers(checks, turn), start=1):
        word = _ORDINALS[number - 1] if number <= len(_ORDINALS) else f"{number}th"
        results = tuple(evaluate_level(nested, context.about(answer)))
        levels.append(Level(f"{word} follow-up", answer, results))
    return TurnResult(tuple(evaluate_level(checks, context.about(turn))), tuple(levels))


def _answers(
    checks: Sequence[Check], turn: TurnRecord
) -> Iterator[tuple[TurnRecord, Sequence[Check]]]:
    """Every follow-up and the checks of its answer, in the order they were sent.

    One that is no longer in the case has none.
    """
    for answer in turn.follow_ups:
        place = answer.asked_by[-1] if answer.asked_by else len(checks)
        nested = checks[place].assertions if 0 <= place < len(checks) else None
        yield answer, nested or []
        yield from _answers(nested or [], answer)
