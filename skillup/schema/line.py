"""What is kept in memory of a trial that has ended; the rest of its grade is read when needed."""

from __future__ import annotations

import sys
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Any, NamedTuple, TypeVar

from skillup.dataclass import frozen
from skillup.schema.grade import CaseStatus, CheckResult, Grade, Judging
from skillup.schema.record import Usage

T = TypeVar("T")
K = TypeVar("K", bound=Hashable)


class SkillUse(NamedTuple):
    """One observation: of one trial, one skill, and what was expected of it there."""

    skill: str
    expected: bool  # Whether it should be used
    used: bool  # Whether it was, everywhere that was expected; or anywhere that it was not


@frozen
class TrialLine:
    """Of a grade, what dependants, limits, the summary, the analysis and the index need."""

    suite: str
    case_id: str
    engine: str
    variant: str
    trial: int
    attempt: int
    status: CaseStatus
    status_apart: str | None
    score: float
    reason: str
    cost_usd: float | None
    duration_ms: int
    usage: tuple[int | None, ...]  # By the fields of Usage
    turns: int  # Whose message was sent
    skill_uses: tuple[SkillUse, ...]
    judging: Judging | None
    error_kind: str | None
    warnings: tuple[str, ...]


_MANY_HAVE = ("suite", "case_id", "engine", "variant", "reason")
_SAME = ("trial", "attempt", "status", "status_apart", "score", "cost_usd", "duration_ms")


def line_of(grade: Grade) -> TrialLine:
    usage: dict[str, Any] = grade.usage or {}
    values = vars(grade)
    same: dict[str, Any] = {name: values[name] for name in _SAME}
    same |= {name: sys.intern(values[name]) for name in _MANY_HAVE}
    kind = (grade.error or {}).get("kind")
    return TrialLine(
        **same,
        usage=_shared(*map(usage.get, Usage.model_fields)),
        turns=sum(turn.status not in _NOT_SENT for turn in grade.turns),
        skill_uses=tuple(skill_uses(grade)),
        judging=grade.judging,
        error_kind=None if kind is None else str(kind),
        warnings=_shared(*grade.warnings),
    )


_NOT_SENT = ("skipped", "error")


@lru_cache(1000)
def _shared(*values: T) -> tuple[T, ...]:
    """Many trials have the same."""
    return values


def lines_of(grades: Sequence[Grade]) -> Sequence[TrialLine]:
    """A line for each; those of stored grades are there already."""
    known: Sequence[TrialLine] | None = getattr(grades, "lines", None)
    return [line_of(grade) for grade in grades] if known is None else known


def grouped(items: Iterable[T], key: Callable[[T], K]) -> dict[K, list[T]]:
    """Those with the same key together, in the order of the first of each."""
    groups: dict[K, list[T]] = {}
    for item in items:
        groups.setdefault(key(item), []).append(item)
    return groups


# Whether skills are used when they should be, and only then: what checks say of it.


def skill_uses(grade: Grade) -> Iterator[SkillUse]:
    """One observation for each skill and expectation; of shared turns in the trial that counts."""
    found: list[SkillUse] = []
    for turn in grade.turns:
        if turn.counted_by is None:
            # Not only what decided: a follow-up that heals a turn is not what the user asked first.
            for checks in (turn.checks, *(follow_up.checks for follow_up in turn.follow_ups)):
                found += _expectations(checks, required=True)
    for check in grade.assertions:
        if failure := check.role == "failure":
            # Reports turn a failure rule's result round: it passes where its pattern is absent.
            check = check.model_copy(update={"passed": not check.passed})
        found += _expectations([check], required=not failure)
    seen = grouped(found, lambda use: (use.skill.casefold(), use.expected))
    for (_, expected), uses in seen.items():
        used = [use.used for use in uses]
        yield uses[0]._replace(used=all(used) if expected else any(used))


def _expectations(checks: Iterable[CheckResult], *, required: bool) -> Iterator[SkillUse]:
    """`required`: each of `checks` has to pass; else none of them may."""
    for check in checks:
        if check.kind in ("skill_used", "skill_not_used"):
            if check.skill and check.assertable and check.error is None:
                of_use = check.kind == "skill_used"
                yield SkillUse(check.skill, of_use == required, of_use == check.passed)
        elif check.kind == "none_of":
            if required or len(check.children) == 1:
                yield from _expectations(check.children, required=not required)
        elif check.kind in ("all_of", "any_of") and (
            # One of several alternatives is not expected by itself.
            required == (check.kind == "all_of") or len(check.children) == 1
        ):
            yield from _expectations(check.children, required=required)
