"""Evaluating what needs judges: ask all that is open at once, then evaluate again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

import anyio
import anyio.to_thread

from skillup.checks.context import Ask
from skillup.judges.ledger import Ledger
from skillup.judges.sitting import Answers, Inquiry, Sitting, check_key
from skillup.schema.case import Case
from skillup.schema.grade import CheckResult, Judging
from skillup.schema.record import TurnError

T = TypeVar("T")


class Reader(Protocol):
    """Answers inquiries. What goes wrong is in the results (`error`), never raised."""

    def problem(self, case: Case) -> TurnError | None:
        """Why `case` could not be judged (no model, no key, …), found before its first turn."""
        ...

    async def read(self, inquiry: Inquiry, ledger: Ledger) -> Sequence[CheckResult]:
        """One result for each of the inquiry's checks, in order; or, of a judge, all it says.

        What it took goes into `ledger`.
        """
        ...


async def settle(evaluate: Callable[[Sitting], T], reader: Reader, ledger: Ledger) -> T:
    """The value of `evaluate` once nothing it asks is open any more."""
    answers = Answers()
    while True:
        sitting = Sitting(answers)
        # Matching what an agent wrote may take its time: others go on meanwhile.
        value = await anyio.to_thread.run_sync(evaluate, sitting, abandon_on_cancel=True)
        if not sitting.inquiries:
            return value
        async with anyio.create_task_group() as group:
            for inquiry in sitting.inquiries.values():
                group.start_soon(_answer, inquiry, reader, ledger, answers)


async def _answer(inquiry: Inquiry, reader: Reader, ledger: Ledger, answers: Answers) -> None:
    results = list(await reader.read(inquiry, ledger))
    if inquiry.judge is not None:
        answers.judges[inquiry.key] = results
        return
    for check, result in zip(inquiry.checks, results, strict=True):
        answers.checks[inquiry.key, check_key(check)] = result


class LiveJudge:
    """What a conversation asks of judges while it is held; `skillup.trial.request.LiveJudge`."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self.ledger = Ledger()

    def judging(self) -> Judging | None:
        """What it has taken so far."""
        return self.ledger.judging()

    async def settle(self, evaluate: Callable[[Ask], T]) -> T:
        """The value of `evaluate`, its checks answered."""
        return await settle(lambda sitting: evaluate(sitting.ask), self._reader, self.ledger)
