"""Branches: a case whose turns name alternative continuations becomes one linear case per path.

Everything after loading sees linear cases only. Two paths share a turn if, and only if, it is
written at the same place of the file.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from skillup.load.model import LoadedCase
from skillup.load.yaml_reader import Document
from skillup.schema.case import Case
from skillup.schema.checks import Check
from skillup.schema.conversation import Branch, Turn

Loc = tuple[str | int, ...]
_TURNS: Loc = ("input", "turns")


@dataclass(frozen=True, eq=False)
class PathDocument(Document):
    """A case's file, seen from one path: places in the linear case are found where they stand."""

    whole: Document
    turns: tuple[Loc, ...]
    """Where each turn of the path is written."""
    checks: tuple[Loc, ...]
    """Where each of its conversation assertions is written."""
    branch: Loc
    """Where the branch that it ends with is written; empty for the main line."""

    def as_written(self, loc: Sequence[str | int]) -> Loc:
        """The place in the file of what is at `loc` in the linear case."""
        place = tuple(loc)
        if not place:
            return self.branch
        if place[:2] == _TURNS and len(place) > 2:
            return (*_at(self.turns, place[2], _TURNS), *place[3:])
        if place[0] == "assertions" and len(place) > 1:
            return (*_at(self.checks, place[1], ("assertions",)), *place[2:])
        return place

    def locate(self, loc: Sequence[str | int], *, key: bool = False) -> tuple[int, int]:
        """Line and column of what is at `loc` in the linear case."""
        return self.whole.locate(self.as_written(loc), key=key)


def paths_of(loaded: LoadedCase) -> list[LoadedCase]:
    """The linear cases that `loaded` stands for: itself, if none of its turns has branches.

    A branch's id is ``CASE/BRANCH`` (within a branch ``CASE/BRANCH/BRANCH``); the turns that follow
    the branching turn in the same list are a path, too, whose id goes without a name.
    """
    case = loaded.case
    turns = case.input.turns or []
    if not any(turn.branches for turn in turns):
        return [loaded]
    own = tuple(("assertions", number) for number in range(len(case.assertions)))
    start = _Line((), (), tuple(case.assertions), own)
    found = [_linear(loaded, line) for line in _lines(turns, _TURNS, start)]
    # The main line first: it is the case's own.
    return sorted(found, key=lambda path: path.case.id != case.id)


def branch_problems(case: Case) -> Iterator[tuple[Loc, str, str]]:
    """What is wrong with the branches' names: where it is, what it is, and what would be right."""
    yield from _name_problems(case.input.turns or [], _TURNS)


@dataclass(frozen=True, slots=True)
class _Line:
    """A path in the making."""

    names: tuple[str, ...]
    turns: tuple[tuple[Loc, Turn], ...]
    checks: tuple[Check, ...]
    check_places: tuple[Loc, ...]
    branch: Loc = ()


def _lines(turns: Sequence[Turn], place: Loc, before: _Line) -> Iterator[_Line]:
    """Every path through `turns`, which stand at `place` and come after `before`."""
    line = before
    for number, turn in enumerate(turns):
        here = (*place, number)
        line = replace(line, turns=(*line.turns, (here, turn)))
        for index, branch in enumerate(turn.branches):
            at = (*here, "branches", index)
            yield from _lines(branch.turns, (*at, "turns"), _into(line, branch, at))
    if not turns[-1].branches:
        yield line


def _into(line: _Line, branch: Branch, at: Loc) -> _Line:
    places = tuple((*at, "assertions", number) for number in range(len(branch.assertions)))
    return _Line(
        (*line.names, branch.name),
        line.turns,
        (*line.checks, *branch.assertions),
        (*line.check_places, *places),
        at,
    )


def _linear(loaded: LoadedCase, line: _Line) -> LoadedCase:
    case, document = loaded.case, loaded.document
    turns = [
        turn.model_copy(update={"branches": []}) if turn.branches else turn
        for _, turn in line.turns
    ]
    updates: dict[str, Any] = {
        "id": "/".join([case.id, *line.names]),
        "input": case.input.model_copy(update={"turns": turns}),
    }
    if line.names:
        updates["assertions"] = list(line.checks)
    places = tuple(place for place, _ in line.turns)
    seen = PathDocument(
        document.path,
        document.text,
        document.data,
        document,
        places,
        line.check_places,
        line.branch,
        place=document.place,
    )
    return replace(
        loaded,
        case=case.model_copy(update=updates),
        document=seen,
        branch_of=case.id,
        places=places,
    )


def _name_problems(turns: Sequence[Turn], place: Loc) -> Iterator[tuple[Loc, str, str]]:
    """Names of one list of turns: wherever in it they branch off, their ids differ by them only."""
    taken: set[str] = set()
    for number, turn in enumerate(turns):
        for index, branch in enumerate(turn.branches):
            at: Loc = (*place, number, "branches", index)
            name = branch.name
            if "/" in name:
                message = f"`{name}` holds a slash: a branch's id is CASE/BRANCH"
                yield (*at, "name"), message, "use - or _ instead"
            if name.casefold() in taken:
                message = f"there is another branch `{name}` here"
                yield (*at, "name"), message, "results are told apart by it: choose another name"
            taken.add(name.casefold())
            yield from _name_problems(branch.turns, (*at, "turns"))


def _at(places: Sequence[Loc], number: str | int, outside: Loc) -> Loc:
    if isinstance(number, int) and number < len(places):
        return places[number]
    return (*outside, number)
