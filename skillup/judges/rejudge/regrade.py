"""Records judged again, by rules at once and by judges several at a time; and what that changes."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from dataclasses import dataclass
from typing import Literal

import anyio

from skillup.checks.registry import JUDGED
from skillup.judges.evaluate import Judge, PendingJudgements
from skillup.judges.grade import ReadFile, grade, grade_record
from skillup.schema.case import Case
from skillup.schema.grade import CheckResult, Grade
from skillup.schema.record import Record

Judges = Callable[[Record, Case], AbstractAsyncContextManager[Judge]]
"""Makes the judge of a record by a case; the same object may be made, and entered, for many."""


@dataclass(frozen=True, slots=True)
class RegradeItem:
    record: Record
    read_file: ReadFile
    case: Case


class Regrader:
    """Grades records: by rules one after the other, by judges several at once."""

    def __init__(self, judges: Judges | None = None) -> None:
        """Without `judges`, checks that need more than rules are errors."""
        self._judges = judges

    def by_rules(self, item: RegradeItem) -> Grade | None:
        pending = PendingJudgements(item.case) if self._judges is not None else None
        graded = grade_record(item.record, item.read_file, case=item.case, pending=pending)
        return None if pending is not None and pending.open else graded

    def by_judges(self, items: Sequence[RegradeItem]) -> list[Grade]:
        """The grades of all of `items`, in order; their `judging` is what this judging took."""
        judges = self._judges
        assert judges is not None
        grades: dict[int, Grade] = {}

        async def one(number: int, judge: Judge) -> None:
            item = items[number]
            record = item.record.model_copy(update={"judging": None})
            grades[number] = await grade(record, item.read_file, judge, case=item.case)

        async def every() -> None:
            async with AsyncExitStack() as stack, anyio.create_task_group() as group:
                for number, item in enumerate(items):
                    context = judges(item.record, item.case)
                    group.start_soon(one, number, await stack.enter_async_context(context))

        anyio.run(every)
        return [grades[number] for number in range(len(items))]


# Two grades of the same record, compared check by check.

Change = Literal["flipped", "changed", "added", "removed"]
"""flipped: passed or not; changed: the same verdict for another score, or with another reason,
quotation or note of whoever read."""
_Placed = tuple[str, CheckResult]


@dataclass(frozen=True, slots=True)
class CheckChange:
    """A check that says something else than before, or that only one of the grades has."""

    change: Change
    where: str  # ``turn 2``, ``turn 2, first follow-up`` or ``conversation``
    before: CheckResult | None  # None: added
    after: CheckResult | None  # None: removed

    @property
    def check(self) -> CheckResult:
        found = self.after or self.before
        assert found is not None
        return found


@dataclass(frozen=True, slots=True)
class GradeChange:
    before: Grade
    after: Grade
    flips: tuple[CheckChange, ...]

    @property
    def is_flip(self) -> bool:
        return self.before.status != self.after.status

    def __bool__(self) -> bool:
        same = ("status", "score", "reason")
        differs = any(getattr(self.before, n) != getattr(self.after, n) for n in same)
        return bool(self.flips) or differs


def is_read(check: CheckResult) -> bool:
    """Somebody reads for it: what they say of it may change while the verdict does not."""
    return (check.kind in JUDGED and check.kind != "script") or check.kind == "agent_judge"


_KEYS: tuple[Callable[[str, CheckResult], Hashable], ...] = (
    lambda where, c: (where, c.role, c.kind, c.expected, c.name),
    lambda where, c: (where, c.role, c.kind, c.expected),
    lambda where, c: (where, c.role, c.kind, c.name),
    # A line that somebody reads is in no other way known again.
    lambda where, c: (where, c.role, c.kind) if is_read(c) else object(),
)
"""By what checks are the same: unchanged, renamed, edited, reworded (in as many checks)."""


def compare(before: Grade, after: Grade) -> GradeChange:
    """Checks are the same if they stand in the same place and look for the same thing.

    Compound checks are compared as a whole. The changes are in the order of the newer grade; what
    was removed comes last.
    """
    old, new = list(_checks(before)), list(_checks(after))
    partner: dict[int, int] = {}
    for key in _KEYS if len(old) == len(new) else _KEYS[:-1]:
        free = [(key(*old[n]), n) for n in range(len(old)) if n not in partner.values()]
        for number, placed in enumerate(new):
            match = next((one for one in free if one[0] == key(*placed)), None)
            if number not in partner and match is not None:
                partner[number] = match[1]
                free.remove(match)
    changes = []
    for number, (where, check) in enumerate(new):
        if number not in partner:
            changes.append(CheckChange("added", where, None, check))
            continue
        known = old[partner[number]][1]
        if known.passed != check.passed:
            changes.append(CheckChange("flipped", where, known, check))
        elif _says(known) != _says(check):
            changes.append(CheckChange("changed", where, known, check))
    gone = [placed for number, placed in enumerate(old) if number not in partner.values()]
    changes += [CheckChange("removed", where, check, None) for where, check in gone]
    return GradeChange(before, after, tuple(changes))


def _checks(grade: Grade) -> Iterator[_Placed]:
    for turn in grade.turns:
        where = f"turn {turn.turn_number}"
        yield from ((where, check) for check in turn.checks)
        for follow_up in turn.follow_ups:
            yield from ((f"{where}, {follow_up.label}", check) for check in follow_up.checks)
    yield from (("conversation", check) for check in grade.assertions)


def _says(check: CheckResult, reads: bool = False) -> Hashable:
    reads = reads or is_read(check)
    words = (check.found, check.excerpt, tuple(check.notes)) if reads else ()
    parts = tuple((part.passed, _says(part, reads)) for part in check.children)
    return (
        check.score, check.weight, check.required, check.assertable, check.error, check.expected,
        words, parts,
    )  # fmt: skip
