"""A turn's checks and their follow-ups: which checks stand at a level, and what is asked next.

A level is a list of checks and the answer they are asked of. Beside its checks it has follow-ups: a
check may carry one of its own, and a `prompt` may stand alone. When a check fails, the follow-ups
are taken in this order: those of failing checks, in the order of the checks, then those that stand
alone. Each answer is a level again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from skillup.checks.context import CheckContext
from skillup.checks.describe import FOLLOW_UP
from skillup.checks.evaluate import evaluate
from skillup.checks.question import question_of
from skillup.schema.checks import Check
from skillup.schema.grade import CheckResult

Placed = tuple[int, Check]
"""A check and its place in its list, from 0."""


def own_checks(checks: Sequence[Check]) -> list[Placed]:
    """The level's checks; prompts that stand alone are none."""
    return [(place, check) for place, check in enumerate(checks) if not _stands_alone(check)]


def evaluate_level(checks: Sequence[Check], context: CheckContext) -> list[CheckResult]:
    """The results of :func:`own_checks`, in order."""
    return [evaluate(check, context) for check in checks if not _stands_alone(check)]


def follow_ups(checks: Sequence[Check], results: Sequence[CheckResult]) -> Iterator[Placed]:
    """What is asked next, in order; nothing if no check failed.

    `results` are those of :func:`evaluate_level`. A check that could not be evaluated asks nothing:
    that is trouble of ours, not the agent's.
    """
    failed = [
        placed
        for placed, result in zip(own_checks(checks), results, strict=True)
        if not result.passed and result.error is None
    ]
    if not failed:
        return
    yield from ((place, check) for place, check in failed if check.prompt is not None)
    yield from ((n, check) for n, check in enumerate(checks) if _stands_alone(check))


def _stands_alone(check: Check) -> bool:
    """Whether it is a prompt without a check beside it."""
    return check.prompt is not None and question_of(check).key == FOLLOW_UP
