"""Records and the cases they are judged by now: by rules at once, by judges several at a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from dataclasses import dataclass

import anyio

from skillup.judges.evaluate import Judge, PendingJudgements
from skillup.judges.grade import grade, grade_record
from skillup.schema.case import Case
from skillup.schema.grade import Grade
from skillup.schema.record import FileState, Record

Judges = Callable[[Record, Case], AbstractAsyncContextManager[Judge]]
"""Makes the judge of a record by a case; the same object may be made, and entered, for many."""


@dataclass(frozen=True, slots=True)
class RegradeItem:
    record: Record
    read_file: Callable[[FileState], bytes | None]
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
