"""Evaluating what needs judges: ask all that is open at once, then evaluate again."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

import anyio
import anyio.to_thread

from skillup.checks import CheckContext
from skillup.checks.context import Ask
from skillup.judges.usage import UsageTracker
from skillup.schema.case import Case
from skillup.schema.checks import Check
from skillup.schema.grade import CheckResult, CheckRole, Judging
from skillup.schema.judge import JudgeConfig
from skillup.schema.record import TurnError, TurnRecord

# What is asked of judges while a record is evaluated, gathered so that it can be asked at once.

Subject = tuple[object, ...]
"""Names what is asked about: a turn (or one of its follow-ups), or the conversation."""


@dataclass(slots=True)
class Judgement:
    """Everything that is asked about one subject in one role: it may go to a model as one call."""

    key: Subject
    context: CheckContext
    role: CheckRole
    checks: list[Check] = field(default_factory=list)
    """Different ones, in the order in which they were met."""
    judge: JudgeConfig | None = None
    """A whole judge (`script`, `agent_judge`) is asked instead of `checks`."""
    case: Case | None = None
    """The case it is judged by; None: the one in the record."""


@dataclass(slots=True)
class JudgeAnswers:
    """What is known so far."""

    checks: dict[tuple[Subject, str], CheckResult] = field(default_factory=dict)
    """By subject and the check as JSON."""
    judges: dict[Subject, list[CheckResult]] = field(default_factory=dict)


class PendingJudgements:
    """One evaluation: answers what is known, notes down what is not."""

    def __init__(self, answers: JudgeAnswers) -> None:
        self.case: Case | None = None
        """The case that is judged by, where it may be another than the record's."""
        self._answers = answers
        self._open: dict[Subject, Judgement] = {}

    @property
    def inquiries(self) -> Mapping[Subject, Judgement]:
        """What could not be answered, by subject."""
        return self._open

    def ask(self, check: Check, context: CheckContext, role: CheckRole) -> CheckResult:
        """The answer of a judge that reads; one that says it is open, if it is not known yet."""
        key = (role, *subject_of(context.turn))
        known = self._answers.checks.get((key, check_key(check)))
        if known is not None:
            return known
        inquiry = self._open.setdefault(key, Judgement(key, context, role, case=self.case))
        if check not in inquiry.checks:
            inquiry.checks.append(check)
        return _open_result(check.key, role)

    def judge(self, number: int, judge: JudgeConfig, context: CheckContext) -> list[CheckResult]:
        """The results of the case's judge `number`, a script or an agent."""
        key: Subject = ("judge", number)
        known = self._answers.judges.get(key)
        if known is not None:
            return known
        self._open[key] = Judgement(key, context, "judge", judge=judge, case=self.case)
        return [_open_result(judge.type or "rule_based", "judge")]


def check_key(check: Check) -> str:
    """Tells checks apart that ask something else."""
    return check.model_dump_json(exclude_unset=True, by_alias=True)


def subject_of(turn: TurnRecord | None) -> Subject:
    """A turn of a record is known by its number and by what asked for it."""
    return ("conversation",) if turn is None else (turn.turn_number, *turn.asked_by)


def _open_result(kind: str, role: CheckRole) -> CheckResult:
    return CheckResult(
        name=kind, kind=kind, passed=False, score=0.0, role=role, error="not answered yet"
    )


T = TypeVar("T")


class Reader(Protocol):
    """Answers inquiries. What goes wrong is in the results (`error`), never raised."""

    def problem(self, case: Case) -> TurnError | None:
        """Why `case` could not be judged (no model, no key, …), found before its first turn."""
        ...

    async def read(self, inquiry: Judgement, ledger: UsageTracker) -> Sequence[CheckResult]:
        """One result for each of the inquiry's checks, in order; or, of a judge, all it says.

        What it took goes into `ledger`.
        """
        ...


async def settle(
    evaluate: Callable[[PendingJudgements], T], reader: Reader, ledger: UsageTracker
) -> T:
    """The value of `evaluate` once nothing it asks is open any more."""
    answers = JudgeAnswers()
    while True:
        sitting = PendingJudgements(answers)
        # Matching what an agent wrote may take its time: others go on meanwhile.
        value = await anyio.to_thread.run_sync(evaluate, sitting, abandon_on_cancel=True)
        if not sitting.inquiries:
            return value
        async with anyio.create_task_group() as group:
            for inquiry in sitting.inquiries.values():
                group.start_soon(_answer, inquiry, reader, ledger, answers)


async def _answer(
    inquiry: Judgement, reader: Reader, ledger: UsageTracker, answers: JudgeAnswers
) -> None:
    results = list(await reader.read(inquiry, ledger))
    if inquiry.judge is not None:
        answers.judges[inquiry.key] = results
        return
    for check, result in zip(inquiry.checks, results, strict=True):
        answers.checks[inquiry.key, check_key(check)] = result


class TurnJudge:
    """What a conversation asks of judges while it is held; `skillup.trial.request.LiveJudge`."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self.ledger = UsageTracker()

    def judging(self) -> Judging | None:
        """What it has taken so far."""
        return self.ledger.judging()

    async def settle(self, evaluate: Callable[[Ask], T]) -> T:
        """The value of `evaluate`, its checks answered."""
        return await settle(lambda sitting: evaluate(sitting.ask), self._reader, self.ledger)
