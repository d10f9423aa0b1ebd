"""Two grades of the same record, compared check by check."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass
from typing import Literal

from skillup.checks.registry import JUDGED
from skillup.schema.grade import CheckResult, Grade

Change = Literal["flipped", "changed", "added", "removed"]
"""flipped: passed or not; changed: the same verdict for another score, or with another reason,
quotation or note of whoever read."""

_Placed = tuple[str, CheckResult]


@dataclass(frozen=True, slots=True)
class CheckChange:
    """A check that says something else than before, or that only one of the grades has."""

    change: Change
    where: str
    """``turn 2``, ``turn 2, first follow-up`` or ``conversation``: where the check stands."""
    before: CheckResult | None
    """None: added."""
    after: CheckResult | None
    """None: removed."""

    @property
    def check(self) -> CheckResult:
        """The newer of its results."""
        found = self.after or self.before
        assert found is not None
        return found


@dataclass(frozen=True, slots=True)
class GradeChange:
    """What judging again changed about one trial."""

    before: Grade
    after: Grade
    flips: tuple[CheckChange, ...]

    @property
    def is_flip(self) -> bool:
        """The verdict is another one."""
        return self.before.status != self.after.status

    def __bool__(self) -> bool:
        return bool(
            self.flips
            or self.is_flip
            or self.before.score != self.after.score
            or self.before.reason != self.after.reason
        )


def compare(before: Grade, after: Grade) -> GradeChange:
    """Checks are the same if they stand in the same place and look for the same thing.

    One that was given a name, or whose name stayed while what it looks for was edited, is the same
    one, too, and so is a line that somebody reads and that was reworded, if the grades have as many
    checks. Compound checks are compared as a whole.
    """
    return GradeChange(before, after, tuple(_flips(list(_checks(before)), list(_checks(after)))))


def _checks(grade: Grade) -> Iterator[_Placed]:
    for turn in grade.turns:
        where = f"turn {turn.turn_number}"
        yield from ((where, check) for check in turn.checks)
        for follow_up in turn.follow_ups:
            yield from ((f"{where}, {follow_up.label}", check) for check in follow_up.checks)
    yield from (("conversation", check) for check in grade.assertions)


def _same(placed: _Placed) -> Hashable:
    where, check = placed
    return where, check.scope, check.role, check.kind, check.expected, check.name


def _renamed(placed: _Placed) -> Hashable:
    where, check = placed
    return where, check.scope, check.role, check.kind, check.expected


def _edited(placed: _Placed) -> Hashable:
    where, check = placed
    return where, check.role, check.kind, check.name


def _reworded(placed: _Placed) -> Hashable:
    """A line that somebody reads is in no other way known again."""
    where, check = placed
    return (where, check.scope, check.role, check.kind) if is_read(check) else object()


def is_read(check: CheckResult) -> bool:
    """Somebody reads for it: what they say of it may change while the verdict does not."""
    return (check.kind in JUDGED and check.kind != "script") or check.kind == "agent_judge"


def _flips(before: list[_Placed], after: list[_Placed]) -> Iterator[CheckChange]:
    """In the order of the newer grade; what was removed comes last."""
    partner: dict[int, int] = {}
    for key in (_same, _renamed, _edited):
        _match(before, after, key, partner)
    if len(before) == len(after):
        _match(before, after, _reworded, partner)
    for number, (where, check) in enumerate(after):
        if number not in partner:
            yield CheckChange("added", where, None, check)
            continue
        old = before[partner[number]][1]
        if old.passed != check.passed:
            yield CheckChange("flipped", where, old, check)
        elif _says(old) != _says(check):
            yield CheckChange("changed", where, old, check)
    taken = set(partner.values())
    for number, (where, check) in enumerate(before):
        if number not in taken:
            yield CheckChange("removed", where, check, None)


def _match(
    before: list[_Placed],
    after: list[_Placed],
    key: Callable[[_Placed], Hashable],
    partner: dict[int, int],
) -> None:
    """Pairs up, in order, what has no partner yet and the same key."""
    taken = set(partner.values())
    waiting: dict[Hashable, list[int]] = {}
    for number in range(len(before) - 1, -1, -1):
        if number not in taken:
            waiting.setdefault(key(before[number]), []).append(number)
    for number, placed in enumerate(after):
        found = waiting.get(key(placed)) if number not in partner else None
        if found:
            partner[number] = found.pop()


def _says(check: CheckResult, reads: bool = False) -> Hashable:
    reads = reads or is_read(check)
    told = (check.found, check.excerpt, tuple(check.notes)) if reads else ()
    parts = tuple((part.passed, _says(part, reads)) for part in check.children)
    return (
        check.score, check.weight, check.required, check.assertable, check.error, check.expected,
        told, parts,
    )  # fmt: skip
