"""Evaluating what needs judges: deterministic checks first, then all open questions at once."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import field
from typing import Any, Protocol, TypeVar

import anyio
import anyio.to_thread

from skillup.checks.context import Ask, CheckContext
from skillup.checks.registry import describe, expected
from skillup.dataclass import mutable
from skillup.judges.question import PROMPTS
from skillup.schema import templates
from skillup.schema.case import Case, Persona
from skillup.schema.checks import Check, Criterion, Rubric
from skillup.schema.grade import CheckResult, CheckRole, Judging
from skillup.schema.judge import JudgeConfig
from skillup.schema.record import Record, Usage, joined
from skillup.schema.suite import fidelity_of

A = TypeVar("A")
B = TypeVar("B")
T = TypeVar("T")
_Key = tuple[object, ...]


@mutable
class UsageTracker:
    """What judges took, added up: calls, tokens, cost."""

    judging: Judging | None = None  # None: nobody was asked

    def add(
        self,
        model: str | None,
        usage: Usage | None,
        cost_usd: float | None,
        *,
        cached: bool = False,
        refused: bool = False,
    ) -> None:
        """One call. A cached one is free, whatever it took when it was made; in place of one that
        a provider `refused` another is made.
        """
        took = Judging(
            calls=int(not refused),
            cached_calls=int(cached),
            models=[model] if model is not None and not refused else [],
            usage=usage.model_dump() if usage is not None and not cached else None,
            cost_usd=None if cached else cost_usd,
        )
        self.judging = joined(self.judging, took)


@mutable
class JudgeRequest:
    """Everything that is asked about one turn, or the conversation, in one role."""

    context: CheckContext
    role: CheckRole
    case: Case  # The case it is judged by, which may be edited since the record was made
    checks: list[Check] = field(default_factory=list)  # In order: all scripts, or none
    judge: JudgeConfig | None = None  # A script or agent, asked instead of `checks`


class Judge(Protocol):
    """Answers requests. What goes wrong is in the results (`error`), never raised."""

    async def answer(self, request: JudgeRequest, usage: UsageTracker) -> Sequence[CheckResult]:
        """A result for each of the request's checks, in order, or those of a whole judge."""


@mutable
class PendingJudgements:
    """What judges have answered in one evaluation, and what they are still to be asked."""

    case: Case | None = None  # What is judged by; None: the case in the record
    open: dict[_Key, JudgeRequest] = field(default_factory=dict)
    answers: dict[_Key, list[CheckResult]] = field(default_factory=dict)
    """By request and check, or by whole judge."""

    def ask(self, check: Check, context: CheckContext, role: CheckRole) -> CheckResult:
        """The judge's answer; while it is not known, an error, and the check is `open`."""
        turn = context.turn
        place = ("conversation",) if turn is None else (turn.turn_number, *turn.asked_by)
        # A script answers by itself, models all that is open at once.
        key = (role, check.key == "script", *place)
        if (known := self.answers.get((key, _digest(check)))) is not None:
            return known[0]
        request = self._request(key, context, role)
        if check not in request.checks:
            request.checks.append(check)
        return blank_result(check.key, role, error="not answered yet")

    def judge(self, number: int, judge: JudgeConfig, context: CheckContext) -> list[CheckResult]:
        """The results of the case's judge `number`, a script or an agent."""
        key = ("judge", number)
        if (known := self.answers.get(key)) is not None:
            return known
        self._request(key, context, "judge").judge = judge
        return [blank_result(judge.type or "rule_based", "judge", error="not answered yet")]

    def _request(self, key: _Key, context: CheckContext, role: CheckRole) -> JudgeRequest:
        if key not in self.open:
            case = self.case or Case.model_validate(context.record.case)
            self.open[key] = JudgeRequest(context, role, case)
        return self.open[key]


def _digest(check: Check) -> str:
    return check.model_dump_json(exclude_unset=True, by_alias=True)


def blank_result(kind: str, role: CheckRole, **fields: Any) -> CheckResult:
    """Before anybody has answered; or the `error` why nobody has."""
    own = {"name": kind, "passed": False, "score": 0.0, **fields}
    return CheckResult(kind=kind, role=role, **own)


def blank_of(check: Check, role: CheckRole, scope: str) -> CheckResult:
    key, spec = check.key_and_spec()
    return blank_result(
        key,
        role,
        name=check.name or describe(check),
        weight=check.weight,
        required=check.required,
        scope=scope,
        expected=expected(key, spec),
    )


async def evaluate(
    work: Callable[[PendingJudgements], T],
    judge: Judge,
    usage: UsageTracker,
    case: Case | None = None,
) -> T:
    """The value of `work`, a pure function, called until all that it asks is answered."""
    pending = PendingJudgements(case)

    async def ask(asked: tuple[_Key, JudgeRequest]) -> None:
        key, request = asked
        results = list(await judge.answer(request, usage))
        if request.judge is not None:
            pending.answers[key] = results
        for check, result in zip(request.checks, results, strict=request.judge is None):
            pending.answers[key, _digest(check)] = [result]

    while True:
        # Matching what an agent wrote may take its time: others go on meanwhile.
        value = await anyio.to_thread.run_sync(work, pending, abandon_on_cancel=True)
        requests, pending.open = pending.open, {}
        if not requests:
            return value
        await gather(ask, requests.items())


async def gather(work: Callable[[A], Awaitable[B]], items: Iterable[A]) -> list[B]:
    """What `work` makes of each of `items`, all at the same time, in order."""
    results: dict[int, B] = {}

    async def one(place: int, item: A) -> None:
        results[place] = await work(item)

    async with anyio.create_task_group() as group:
        for place, item in enumerate(items):
            group.start_soon(one, place, item)
    return [results[place] for place in range(len(results))]


@mutable
class TurnJudge:
    """What a conversation asks of judges as it goes on; `skillup.trial.request.LiveJudge`."""

    judge: Judge
    _usage: UsageTracker = field(default_factory=UsageTracker)

    def judging(self) -> Judging | None:
        return self._usage.judging

    async def evaluate(self, work: Callable[[Ask], T]) -> T:
        return await evaluate(lambda pending: work(pending.ask), self.judge, self._usage)


# Whether a simulated user kept to its part: asked of the judge's model, and no part of the verdict.


def described(persona: Persona) -> str:
    """The part, as who plays it is told."""
    knowledge, behavior = (
        "\n".join(f"- {one}" for one in lines) for lines in (persona.knowledge, persona.behavior)
    )
    sections = {
        "Who you are": persona.role,
        "What you want": persona.objective,
        "What you know": knowledge,
        "How you behave": behavior,
    }
    return "\n\n".join(f"{what}:\n{text}" for what, text in sections.items() if text)


def fidelity_check(record: Record, case: Case) -> Check | None:
    """Asks of each message of a led conversation; None: of none, or `case` does not want it."""
    played = (turn for turn in record.turns if turn.source == "simulator" and turn.started_at)
    written = [f"turn {turn.turn_number}" for turn in played]
    given = ((record.case.get("input") or {}).get("conversation") or {}).get("persona")
    unfinished = record.first_error() is not None or record.skipped is not None
    if fidelity_of(case) == "off" or not written or not given or unfinished:
        return None
    persona, variables = Persona.model_validate(given), record.variables_after(None)
    part = "".join(piece for piece, _ in templates.pieces(described(persona), variables))
    outcome = "The user's message of {} keeps to the part."
    asked = [Criterion(id=name, outcome=outcome.format(name)) for name in written]
    rubric = Rubric(criteria=asked, prompt=PROMPTS["user kept to its part"].format(part=part))
    return Check(name="the simulated user kept to its part", literal=True, rubric=rubric)
