"""What a judge said of each thing it was asked, so that it can be compared with others."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from skillup.checks.registry import ASKING
from skillup.schema.grade import CheckResult, Grade

CASE = "case"
"""The `check` of the verdict on the whole trial."""


@dataclass(frozen=True, slots=True, order=True)
class Item:
    """One thing that is judged: a criterion, a check, or the trial as a whole."""

    job: str
    turn: int
    """From 1; 0: the conversation."""
    check: str
    """The check's name; of a criterion, also its own: ``name / criterion``."""

    def is_part_of(self, check: Item) -> bool:
        """It is a criterion of `check`."""
        same_place = (self.job, self.turn) == (check.job, check.turn)
        return same_place and self.check.startswith(f"{check.check} / ")

    def __str__(self) -> str:
        where = f"turn {self.turn}: " if self.turn else ""
        return f"{self.job}: {where}{self.check}"


@dataclass(frozen=True, slots=True)
class Verdict:
    """What was said. An error is no verdict, and is counted apart."""

    passed: bool | None
    """None: the judge failed."""
    reason: str
    quote: str = ""
    """What it was shown to rest on."""
    kind: str = ""
    """The key of the check it is about; `case`: of the trial as a whole."""


def verdicts_of(job: str, grade: Grade) -> dict[Item, Verdict]:
    """Everything that judges who read were asked about the trial, and the trial's own verdict.

    A check of several criteria counts by its criteria. Deterministic checks say the same whoever
    judges: they are left out, and so are those for which there was nothing to read. A skipped trial
    has no verdict.
    """
    found: dict[Item, Verdict] = {}
    for turn, result in _read(grade):
        for name, one in _parts(result):
            item, number = Item(job, turn, name), 1
            while item in found:
                number += 1
                item = Item(job, turn, f"{name} #{number}")
            passed = None if one.error else one.passed
            found[item] = Verdict(passed, one.error or one.found, one.excerpt, result.kind)
    if grade.status != "SKIP":
        passed = None if grade.status == "ERROR" else grade.status == "PASS"
        found[Item(job, 0, CASE)] = Verdict(passed, grade.reason, kind=CASE)
    return found


def _read(grade: Grade) -> Iterator[tuple[int, CheckResult]]:
    for turn in grade.turns:
        for check in turn.checks:
            yield from ((turn.turn_number, one) for one in _reading(check))
        for follow_up in turn.follow_ups:
            for check in follow_up.checks:
                yield from ((turn.turn_number, one) for one in _reading(check))
    for check in grade.assertions:
        yield from ((0, one) for one in _reading(check))


def _reading(check: CheckResult) -> Iterator[CheckResult]:
    """The check itself if somebody read for it; else those within it."""
    if check.kind in ASKING or check.role == "judge":
        if check.assertable:
            yield check
    else:
        for child in check.children:
            yield from _reading(child)


def _parts(check: CheckResult) -> Iterator[tuple[str, CheckResult]]:
    if check.error is not None or not check.children:
        yield check.name, check
        return
    yield from ((f"{check.name} / {child.name}", child) for child in check.children)
