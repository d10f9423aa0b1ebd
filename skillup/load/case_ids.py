"""Ids and dependencies of a suite's cases: what no case knows by itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence, Set

from skillup.errors import Problem
from skillup.load.field_names import field_name
from skillup.load.model import LoadedCase
from skillup.load.suggest import near_miss

_MOST_NAMED = 12


def id_problems(cases: Sequence[LoadedCase], others: Callable[[], Set[str]]) -> Iterator[Problem]:
    """Ids that are taken, and dependencies on nothing, on oneself or in a circle.

    `others` gives the ids of the suite's cases that are not among `cases`: those not asked for, and
    those that do not validate. It is called only if somebody depends on one.
    """
    by_id: dict[str, LoadedCase] = {}
    taken: dict[str, LoadedCase] = {}
    for loaded in cases:
        case_id = loaded.case.id
        by_id.setdefault(case_id, loaded)
        other = taken.setdefault(case_id.casefold(), loaded)
        if other is loaded:
            continue
        message = f"`{case_id}` is the id of {other.path.name} already"
        if other.case.id != case_id:
            message = (
                f"`{case_id}` and `{other.case.id}` (of {other.path.name}) differ only in upper "
                "and lower case: on many file systems their results would be in one folder"
            )
        yield _problem(loaded, ("id",), message, "give one of them another id")
    yield from _unknown(cases, by_id, others)
    yield from _circles(by_id)


def _unknown(
    cases: Sequence[LoadedCase], by_id: Mapping[str, LoadedCase], others: Callable[[], Set[str]]
) -> Iterator[Problem]:
    for loaded in cases:
        for index, needed in enumerate(loaded.case.depends_on):
            loc = ("depends_on", index)
            if needed == loaded.case.id:
                yield _problem(loaded, loc, "the case depends on itself", "remove it")
            elif needed not in by_id and needed not in others():
                known = sorted({*by_id, *others()} - {loaded.case.id})
                guess = near_miss(needed, known)
                listed = ", ".join(known[:_MOST_NAMED]) or "none"
                more = ", …" if len(known) > _MOST_NAMED else ""
                fix = f"did you mean `{guess}`?" if guess else f"the others are: {listed}{more}"
                message = f"there is no other case `{needed}` in this suite"
                yield _problem(loaded, loc, message, fix)


def _circles(by_id: Mapping[str, LoadedCase]) -> Iterator[Problem]:
    """Each circle once. With a stack of its own: a chain of cases may be long."""
    done: set[str] = set()
    for start in by_id:
        trail: dict[str, int] = {}
        stack: list[tuple[str, int]] = [(start, 0)]
        while stack:
            current, position = stack.pop()
            if position == 0:
                if current in done:
                    continue
                trail[current] = len(trail)
            needs = by_id[current].case.depends_on
            if position == len(needs):
                trail.pop(current)
                done.add(current)
                continue
            stack.append((current, position + 1))
            following = needs[position]
            if following in trail and following != current:
                circle = [*list(trail)[trail[following] :], following]
                message = f"these cases wait for each other: {' → '.join(circle)}"
                loc = ("depends_on", position)
                yield _problem(by_id[current], loc, message, "take one of them out")
            elif following in by_id and following not in done and following not in trail:
                stack.append((following, 0))


def _problem(loaded: LoadedCase, loc: tuple[str | int, ...], message: str, fix: str) -> Problem:
    line, column = loaded.document.locate(loc)
    return Problem(loaded.path, line, column, field_name(loc), message, fix)
