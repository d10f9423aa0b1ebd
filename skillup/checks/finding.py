"""What a check function gives back, before name, weight and place are added to it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from skillup.schema.grade import CheckResult


@dataclass(frozen=True, slots=True)
class Finding:
    """Passed or not, what was there, and the piece of it that proves it."""

    passed: bool
    found: str
    excerpt: str = ""
    assertable: bool = True
    evaluated: bool = True
    error: str | None = None
    error_kind: Literal["template"] | None = None
    score: float | None = None
    """None: 1 if passed, else 0."""
    children: tuple[CheckResult, ...] = ()


def not_assertable(why: str) -> Finding:
    """There is nothing to look at: this fails, and so does its negation."""
    return Finding(passed=False, found=why, assertable=False)


def broken(why: str, kind: Literal["template"] | None = None) -> Finding:
    """The check itself could not be evaluated: neither it nor its negation passes."""
    return Finding(passed=False, found="", error=why, error_kind=kind)


class CannotEvaluateError(Exception):
    """The check cannot be evaluated; never leaves this package, where it becomes a `broken`."""
