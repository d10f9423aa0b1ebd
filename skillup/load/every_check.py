"""Every check of a case, wherever it may stand, with its place."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeVar

from skillup.schema.case import Case
from skillup.schema.checks import Check, CheckSet

Loc = tuple[str | int, ...]


def all_checks(case: Case) -> Iterator[tuple[Loc, Check | CheckSet, int]]:
    """Every check of the case, with its place and how deep in follow-ups it stands."""
    if case.expect is not None:
        yield from _walk(case.expect, ("expect",), 0)
    yield from walk_checks(case.assertions, ("assertions",))
    prefix: Loc = ("judge",)
    for number, judge in enumerate(case.all_judges()):
        if case.judges is not None:
            prefix = ("judges", number)
        yield from walk_checks(judge.success, (*prefix, "success"))
        yield from walk_checks(judge.failure, (*prefix, "failure"))
    for number, turn in enumerate(case.input.turns or ()):
        loc: Loc = ("input", "turns", number)
        if turn.post_condition is not None:
            yield from _walk(turn.post_condition, (*loc, "post_condition"), 0)
        yield from walk_checks(turn.assertions, (*loc, "assertions"))


C = TypeVar("C", bound=Check | CheckSet)


def walk_checks(
    checks: Sequence[Check], loc: Loc, depth: int = 0
) -> Iterator[tuple[Loc, Check, int]]:
    """The checks and what stands within them: place, check, how deep in follow-ups."""
    for index, check in enumerate(checks):
        yield from _walk(check, (*loc, index), depth)


def _walk(check: C, loc: Loc, depth: int) -> Iterator[tuple[Loc, C | Check, int]]:
    yield loc, check, depth
    if isinstance(check, Check):
        yield from walk_checks(check.assertions or (), (*loc, "assertions"), depth + 1)
    for key in ("any_of", "all_of", "none_of"):
        yield from walk_checks(getattr(check, key) or (), (*loc, key), depth)
