"""Ids and dependencies of a suite's cases: what no case knows by itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import replace
from itertools import takewhile
from pathlib import Path

from skillup.errors import Problem
from skillup.load.case_problems import problem_at
from skillup.load.discover import DATASET_ENDINGS
from skillup.load.expand import PathDocument
from skillup.load.model import LoadedCase, LoadedSuite
from skillup.load.model_fields import near_miss
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


# Suites that have the same name, told apart: results, gates and histories go by a suite's name.


def told_apart(suites: Sequence[LoadedSuite], problems: list[Problem]) -> list[LoadedSuite]:
    """`suites`; those of the same name have what differs in their paths behind it: ``keeper (a)``.

    They have it wherever they lie together. Each is told of in `problems`, as a warning: loaded
    alone, it has its own name.
    """
    same: dict[str, list[Path]] = {}
    for suite in suites:
        same.setdefault(suite.name, []).append(suite.path)
    apart = {path: where for paths in same.values() for path, where in _differences(paths).items()}
    named = []
    for suite in suites:
        if len(same[suite.name]) == 1:
            named.append(suite)
            continue
        name = f"{suite.name} ({apart[suite.path]})"
        named.append(replace(suite, name=name))
        if suite.path.suffix in DATASET_ENDINGS:
            continue  # it cannot have a name of its own
        message = f"{len(same[suite.name])} suites are called {suite.name}; here this is `{name}`"
        fix = "give each a name of its own, by which runs can be compared whatever they hold"
        problems.append(problem_at(suite.document, ("name",), message, fix, severity="warning"))
    return named


def _differences(paths: Sequence[Path]) -> dict[Path, str]:
    """The part of each path between what all begin with and what all end with."""
    parts = [path.parts for path in paths]
    shortest = min(map(len, parts))
    before = _common(parts, shortest)
    after = _common([part[::-1] for part in parts], shortest - before)
    return {path: "/".join(path.parts[before : len(path.parts) - after]) or "." for path in paths}


def _common(parts: Sequence[Sequence[str]], most: int) -> int:
    """How many of the first `most` parts are the same in all."""
    alike = (len(set(column)) == 1 for column in zip(*parts, strict=False))
    return min(most, len(list(takewhile(bool, alike))))
