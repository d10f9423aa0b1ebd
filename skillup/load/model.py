"""What loading yields: suites and cases with the places they came from; the walk over checks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from skillup.errors import InvalidFilesError, Problem
from skillup.load.yaml_reader import Document, Loc
from skillup.schema.case import Case
from skillup.schema.checks import Check, CheckSet
from skillup.schema.judge import JudgeConfig
from skillup.schema.suite import Suite


@dataclass(frozen=True, slots=True)
class LoadedCase:
    """A case, the suite's defaults merged in."""

    case: Case
    document: Document
    item: str | None = None
    """Of a dataset's item: its id and its message, for `--item`; None: it is no such case."""
    branch_of: str | None = None
    """The id of the case that this is one path of; None: the case has no branches."""
    places: tuple[Loc, ...] = ()
    """Where each turn of such a path is written: paths share what stands at the same place."""

    @property
    def family(self) -> str:
        """The id of the case as it is written: its own, or that of the case with the branches."""
        return self.branch_of or self.case.id

    @property
    def path(self) -> Path:
        """The file it was read from."""
        return self.document.path


@dataclass(frozen=True, slots=True)
class LoadedSuite:
    """A suite and those of its cases that validate."""

    name: str
    suite: Suite
    document: Document
    root: Path
    """What its relative paths are relative to."""
    cases: tuple[LoadedCase, ...]

    @property
    def path(self) -> Path:
        """Its `eval.yaml`."""
        return self.document.path


@dataclass(frozen=True, slots=True)
class Loaded:
    """Everything that was asked for, with all problems found on the way."""

    suites: tuple[LoadedSuite, ...]
    problems: tuple[Problem, ...]

    @property
    def errors(self) -> tuple[Problem, ...]:
        """The problems that keep a run from starting."""
        return tuple(p for p in self.problems if p.severity == "error")

    @property
    def warnings(self) -> tuple[Problem, ...]:
        """What the author should know, and what does not keep a run from starting."""
        return tuple(p for p in self.problems if p.severity == "warning")

    def or_raise(self) -> Loaded:
        """Itself, if nothing is wrong. Raises InvalidFilesError with every error otherwise."""
        if self.errors:
            raise InvalidFilesError(self.errors)
        return self


def all_checks(case: Case) -> Iterator[tuple[Loc, Check | CheckSet, int]]:
    """Every check of the case, with its place and how deep in follow-ups it stands."""
    if case.expect is not None:
        yield from _walk(case.expect, ("expect",), 0)
    yield from _walk_list(case.assertions, ("assertions",), 0)
    for place, judge in judges_of(case):
        yield from _walk_list(judge.success, (*place, "success"), 0)
        yield from _walk_list(judge.failure, (*place, "failure"), 0)
    for number, turn in enumerate(case.input.turns or ()):
        loc: Loc = ("input", "turns", number)
        if turn.post_condition is not None:
            yield from _walk(turn.post_condition, (*loc, "post_condition"), 0)
        yield from _walk_list(turn.assertions, (*loc, "assertions"), 0)


def judges_of(case: Case) -> Iterator[tuple[Loc, JudgeConfig]]:
    """The case's judges, each with its place."""
    for number, judge in enumerate(case.all_judges()):
        yield ("judges", number) if case.judges is not None else ("judge",), judge


def _walk_list(
    checks: Sequence[Check], loc: Loc, depth: int
) -> Iterator[tuple[Loc, Check | CheckSet, int]]:
    for index, check in enumerate(checks):
        yield from _walk(check, (*loc, index), depth)


def _walk(
    check: Check | CheckSet, loc: Loc, depth: int
) -> Iterator[tuple[Loc, Check | CheckSet, int]]:
    yield loc, check, depth
    if isinstance(check, Check):
        yield from _walk_list(check.assertions or (), (*loc, "assertions"), depth + 1)
    for key in ("any_of", "all_of", "none_of"):
        yield from _walk_list(getattr(check, key) or (), (*loc, key), depth)
