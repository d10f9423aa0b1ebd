"""Records and the cases they are judged by now: by rules at once, by readers several at a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from dataclasses import dataclass
from typing import Any

import anyio

from skillup.judges.evaluate import JudgeAnswers, PendingJudgements, Reader
from skillup.judges.grade import grade, grade_record
from skillup.schema.case import Case
from skillup.schema.grade import Grade
from skillup.schema.record import FileState, Record

Readers = Callable[[Record, Case], AbstractAsyncContextManager[Reader]]
"""Makes what answers for a record judged by a case; the same object may be made for many."""


@dataclass(frozen=True, slots=True)
class RegradeItem:
    """What is judged, and by what."""

    record: Record
    read_file: Callable[[FileState], bytes | None]
    case: Case


class Regrader:
    """Grades one record after the other. Cases that many records share are validated once."""

    def __init__(self, readers: Readers | None = None) -> None:
        """`readers` is asked only for records whose case needs a judge that reads.

        Without it, checks that need such a judge are errors.
        """
        self._readers = readers
        self._cases: dict[tuple[str, str], tuple[dict[str, Any], Case]] = {}

    def recorded_case(self, record: Record) -> Case:
        """The case as it was run. Raises pydantic's ValidationError if it is none."""
        key = record.suite, record.case_id
        known = self._cases.get(key)
        # Repetitions of a case are the same but for what `--var` or an edit between made of it.
        if known is None or known[0] != record.case:
            known = self._cases[key] = (record.case, Case.model_validate(record.case))
        return known[1]

    def by_rules(self, item: RegradeItem) -> Grade | None:
        """The grade; None if only :meth:`by_reading` can find it."""
        if self._readers is None:
            return grade_record(item.record, item.read_file, case=item.case)
        sitting = PendingJudgements(JudgeAnswers())
        graded = grade_record(item.record, item.read_file, case=item.case, sitting=sitting)
        return None if sitting.inquiries else graded

    def by_reading(self, items: Sequence[RegradeItem]) -> list[Grade]:
        """The grades of all of `items`, which are judged at once, in their order."""
        assert self._readers is not None
        made = [self._readers(item.record, item.case) for item in items]
        return anyio.run(_read, items, made)


async def _read(
    items: Sequence[RegradeItem], made: Sequence[AbstractAsyncContextManager[Reader]]
) -> list[Grade]:
    grades: dict[int, Grade] = {}

    async def one(number: int, item: RegradeItem, reader: Reader) -> None:
        grades[number] = await grade(item.record, item.read_file, reader, case=item.case)

    async with AsyncExitStack() as stack:
        distinct = {id(readers): readers for readers in made}
        entered = {key: await stack.enter_async_context(it) for key, it in distinct.items()}
        async with anyio.create_task_group() as group:
            for number, (item, readers) in enumerate(zip(items, made, strict=True)):
                group.start_soon(one, number, item, entered[id(readers)])
    return [grades[number] for number in range(len(items))]
