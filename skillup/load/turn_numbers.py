"""Checks that name a turn: is there such a turn on each path through the case?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from skillup.errors import Problem
from skillup.load.every_check import all_checks
from skillup.load.model import LoadedCase
from skillup.load.yaml_reader import field_name
from skillup.schema.case import Case
from skillup.schema.check_specs import (
    ToolCountInTurn,
    ToolMatchInTurn,
    TurnContains,
    TurnNotContains,
)
from skillup.schema.checks import Check
from skillup.schema.simulation import lead_of

Loc = tuple[str | int, ...]
_IN_TURN = (ToolCountInTurn, ToolMatchInTurn, TurnContains, TurnNotContains)


def turn_problems(paths: Sequence[LoadedCase]) -> Iterator[Problem]:
    """The numbers that are too high, each once: a case's own checks are asked on all its paths."""
    found: dict[tuple[int, int, str, int], list[tuple[LoadedCase, int]]] = {}
    for path in paths:
        turns = _turns(path.case)
        for loc, number in _numbers(path.case):
            if turns and number > turns:
                place = path.document.locate(loc)
                field = field_name(path.document.as_written(loc))
                found.setdefault((*place, field, number), []).append((path, turns))
    for (line, column, field, number), too_short in found.items():
        path, _ = too_short[0]
        message, fix = _words(number, too_short)
        yield Problem(path.document.path, line, column, field, message, fix)


def _words(number: int, paths: Sequence[tuple[LoadedCase, int]]) -> tuple[str, str]:
    (path, turns), *others = paths
    if others:
        listed = ", ".join(f"`{one.case.id}` has {count}" for one, count in paths)
        return f"there is no turn {number} on these paths: {listed}", "turns count along each path"
    is_branch = path.branch_of not in (None, path.case.id)
    whose = f"`{path.case.id}`, a branch" if is_branch else "a case"
    return f"turn {number} of {whose} with {turns}", f"turns count from 1 to {turns}"


def _turns(case: Case) -> int:
    """How many there are; 0: nobody can say."""
    lead = lead_of(case)
    if lead is not None:
        return lead.max_turns  # the simulated user decides how many of them there are
    return len(case.input.turns or ()) or (1 if case.input.prompt is not None else 0)


def _numbers(case: Case) -> Iterator[tuple[Loc, int]]:
    """Each number of a turn that a check names, and where."""
    for loc, keys, _ in all_checks(case):
        if isinstance(keys, Check) and isinstance(keys.turn, int):
            yield (*loc, "turn"), keys.turn
        for key, spec in keys.given():
            if isinstance(spec, _IN_TURN) and isinstance(spec.turn, int):
                yield (*loc, key, "turn"), spec.turn
