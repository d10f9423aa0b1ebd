"""Ids and dependencies of a suite's cases: what no case knows by itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence, Set

from skillup.errors import Problem
from skillup.load.branches import PathDocument
from skillup.load.model import LoadedCase
from skillup.load.suggest import near_miss
from skillup.load.yaml_reader import field_name

_MOST_NAMED = 12


def id_problems(cases: Sequence[LoadedCase], others: Callable[[], Set[str]]) -> Iterator[Problem]:
    """Ids that are taken, and dependencies on nothing, on oneself or in a circle.

    `cases` are the linear ones: a case with branches is there once for each path through it.
    `others` gives the ids of the suite's cases that are not among `cases`: those not asked for, and
    those that do not validate. It is called only if somebody depends on one.
    """
    by_id: dict[str, LoadedCase] = {}
    taken: dict[str, LoadedCase] = {}
    for loaded in cases:
        case_id = loaded.case.id
        by_id.setdefault(case_id, loaded)
        other = taken.setdefault(case_id.casefold(), loaded)
        if other is loaded or _same_case(other, loaded):
            continue  # branches of the same name have been told already
        where = other.path.name
        if other.item is not None:
            where += f":{other.document.locate(('id',))[0]}"
        message = f"`{case_id}` is the id of {where} already"
        if other.case.id != case_id:
            message = (
                f"`{case_id}` and `{other.case.id}` (of {other.path.name}) differ only in upper "
                "and lower case: on many file systems their results would be in one folder"
            )
        yield _problem(loaded, ("id",), message, "give one of them another id")
    families: dict[str, LoadedCase] = {}
    for loaded in cases:
        families.setdefault(loaded.family, loaded)
    owners = {name: loaded.family for name, loaded in by_id.items()} | {f: f for f in families}
    yield from _unknown(families, owners, others)
    yield from _circles(families, owners)


def _unknown(
    families: Mapping[str, LoadedCase], owners: Mapping[str, str], others: Callable[[], Set[str]]
) -> Iterator[Problem]:
    for own, loaded in families.items():
        for index, needed in enumerate(loaded.case.depends_on):
            loc = ("depends_on", index)
            if owners.get(needed) == own:
                yield _problem(loaded, loc, "the case depends on itself", "remove it")
            elif needed not in owners and not _is_among(others(), needed):
                known = sorted({*owners, *others()} - {own})
                guess = near_miss(needed, known)
                listed = ", ".join(known[:_MOST_NAMED]) or "none"
                more = ", …" if len(known) > _MOST_NAMED else ""
                fix = f"did you mean `{guess}`?" if guess else f"the others are: {listed}{more}"
                message = f"there is no other case `{needed}` in this suite"
                yield _problem(loaded, loc, message, fix)


def _same_case(one: LoadedCase, other: LoadedCase) -> bool:
    """Whether they are paths of one case."""
    first, second = one.document, other.document
    return (
        isinstance(first, PathDocument)
        and isinstance(second, PathDocument)
        and first.whole is second.whole
    )


def _is_among(others: Set[str], needed: str) -> bool:
    """Whether it is one of `others`, or could be a branch of one: those are not looked into."""
    parts = needed.split("/")
    return any("/".join(parts[:count]) in others for count in range(1, len(parts) + 1))


def _circles(families: Mapping[str, LoadedCase], owners: Mapping[str, str]) -> Iterator[Problem]:
    """Each circle once. With a stack of its own: a chain of cases may be long."""
    done: set[str] = set()
    for start in families:
        trail: dict[str, int] = {}
        stack: list[tuple[str, int]] = [(start, 0)]
        while stack:
            current, position = stack.pop()
            if position == 0:
                if current in done:
                    continue
                trail[current] = len(trail)
            needs = families[current].case.depends_on
            if position == len(needs):
                trail.pop(current)
                done.add(current)
                continue
            stack.append((current, position + 1))
            following = owners.get(needs[position], "")
            if following in trail and following != current:
                circle = [*list(trail)[trail[following] :], following]
                message = f"these cases wait for each other: {' → '.join(circle)}"
                loc = ("depends_on", position)
                yield _problem(families[current], loc, message, "take one of them out")
            elif following in families and following not in done and following not in trail:
                stack.append((following, 0))


def _problem(loaded: LoadedCase, loc: tuple[str | int, ...], message: str, fix: str) -> Problem:
    line, column = loaded.document.locate(loc)
    where = field_name(loaded.document.as_written(loc))
    return Problem(loaded.path, line, column, where, message, fix)
