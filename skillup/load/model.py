"""What loading yields: suites and cases with the places they came from."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from skillup.errors import InvalidFilesError, Problem
from skillup.schema.case import Case
from skillup.schema.suite import Suite

if TYPE_CHECKING:
    from skillup.load.yaml_reader import Document


@dataclass(frozen=True, slots=True)
class LoadedCase:
    """A case, the suite's defaults merged in."""

    case: Case
    document: Document

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
