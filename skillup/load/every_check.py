"""Every check of a case, wherever it may stand, with its place."""

from __future__ import annotations

from collections.abc import Iterator

from skillup.schema.case import Case
from skillup.schema.checks import Check, CheckSet

Loc = tuple[str | int, ...]


def all_checks(case: Case) -> Iterator[tuple[Loc, Check | CheckSet, int]]:
    """Every check of the case, with its place and how deep in follow-ups it stands."""
    if case.expect is not None:
        yield ("expect",), case.expect, 0
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
            yield (*loc, "post_condition"), turn.post_condition, 0
        yield from walk_checks(turn.assertions, (*loc, "assertions"))


def walk_checks(checks: list[Check], loc: Loc, depth: int = 0) -> Iterator[tuple[Loc, Check, int]]:
    """The checks and what stands within them: place, check, how deep in follow-ups."""
    for index, check in enumerate(checks):
        here = (*loc, index)
        yield here, check, depth
        if check.assertions:
            yield from walk_checks(check.assertions, (*here, "assertions"), depth + 1)
        for key in ("any_of", "all_of", "none_of"):
            children = getattr(check, key)
            if children:
                yield from walk_checks(children, (*here, key), depth)
