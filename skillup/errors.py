"""The exceptions that skillup raises, all of them on purpose.

What happens *inside* a conversation is data: :class:`skillup.schema.record.TurnError`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import IntEnum
from pathlib import Path

from skillup.dataclass import frozen


class ExitCode(IntEnum):
    """What the process returns; ``ERROR`` outranks ``FAILED``."""

    PASSED = 0
    FAILED = 1
    USAGE = 2
    ERROR = 3
    INTERRUPTED = 130


class SkillupError(Exception):
    """Base of all. ``hint`` says what to do about it, in one sentence."""

    exit_code: ExitCode = ExitCode.ERROR

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class UsageError(SkillupError):
    """The command line asks for something that cannot be."""

    exit_code = ExitCode.USAGE


class RunDirectoryError(SkillupError):
    """A run directory is missing, damaged, or not one of ours."""

    exit_code = ExitCode.USAGE


class FullDiskError(SkillupError):
    """A disk has no room left; the trial that met that is unfinished, and no more are run."""


class IndexTroubleError(SkillupError):
    """The index of past runs cannot be opened, read or written; the runs are not touched by it."""


class StoreTroubleError(SkillupError):
    """The store that a URL names cannot be reached, read or written."""


class OutputError(SkillupError):
    """What was to be shown cannot be written to stdout: its disk is full, or the like."""


class InterruptedRunError(SkillupError):
    """Ctrl-C or SIGTERM; everything that had finished is on disk."""

    exit_code = ExitCode.INTERRUPTED


@frozen
class Problem:
    """One thing wrong in one place of a file. Lines and columns count from 1; 0 means unknown."""

    file: Path
    line: int
    column: int
    field: str
    message: str
    fix: str = ""
    severity: str = "error"  # "error" | "warning"; in the report of an import "lost" | "changed"

    def __str__(self) -> str:
        where = f"{self.file}:{self.line}:{self.column}"
        field = f" {self.field}:" if self.field else ""
        fix = f"; {self.fix}" if self.fix else ""
        kind = " warning:" if self.severity == "warning" else ""
        return f"{where}:{kind}{field} {self.message}{fix}"


class InvalidFilesError(SkillupError):
    """One or more files do not validate; ``problems`` holds every one of them, in file order."""

    exit_code = ExitCode.USAGE

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = tuple(problems)
        count = len(self.problems)
        super().__init__(f"{count} problem{'s' if count != 1 else ''} found")


def near_miss(name: str, known: Iterable[str]) -> str | None:
    """The name of `known` that is most like `name`, but for case, hyphens and blanks, if any is."""
    from difflib import get_close_matches  # most runs have nothing misspelled

    def plain(text: str) -> str:
        return text[:80].casefold().replace("-", "_").replace(" ", "_")

    by_spelling = {plain(candidate): candidate for candidate in reversed(list(known))}
    # The first words may stand for a whole name.
    longer = [spelling for spelling in by_spelling if spelling.startswith(f"{plain(name)}_")]
    close = get_close_matches(plain(name), by_spelling, n=1, cutoff=0.7)
    found = longer if len(longer) == 1 and plain(name) not in by_spelling else close
    return by_spelling[found[0]] if found else None
