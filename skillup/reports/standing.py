"""How a run stands: what is running and what it is doing, counts, what it has taken, how long yet.

Kept by whoever shows the run; pure but for the clock, which is handed in.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TypeVar

from skillup.plan import Job, Plan
from skillup.reports.pace import Pace
from skillup.schema.grade import Grade
from skillup.trial import TrialEvent

Amount = TypeVar("Amount", int, float)
_PREPARING = "preparing the workspace"
_WAITING = "waiting for the agent"
_THINKS = "thinks"
_SIMULATED = "simulated user: "


@dataclass(slots=True)
class Running:
    """A trial that is being held."""

    job: Job
    began: float
    attempt: int = 1
    turn: int = 0
    turns: int = 0
    doing: str = _PREPARING
    calls: dict[str, str] = field(default_factory=dict)
    """Of calls that have not returned: what was told of them."""
    tokens: int | None = None
    cost_usd: float | None = None


class Standing:
    """What has been heard of a run so far."""

    def __init__(
        self,
        plan: Plan,
        *,
        finished: Iterable[str] = (),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`finished` are the trials that an earlier start of the run has ended."""
        self.clock = clock
        self.began = clock()
        self.running: dict[str, Running] = {}
        self.counts: Counter[str] = Counter()
        self.tokens: int | None = None
        self.cost_usd: float | None = None
        done = set(finished)
        self.kept = sum(job.id in done for job in plan.jobs)
        self.total = len(plan.jobs)
        self._waiting = {job.id: job for job in plan.jobs if job.id not in done}
        self._at_once = 0
        self._pace = Pace()

    @property
    def done(self) -> int:
        """Trials that have ended, earlier ones too."""
        return self.kept + sum(self.counts.values())

    @property
    def waiting(self) -> int:
        """Trials that have not begun."""
        return len(self._waiting)

    def start(self, job: Job, attempt: int) -> None:
        """A trial (or another attempt at it) begins."""
        self._waiting.pop(job.id, None)
        before = self.running.get(job.id)
        running = Running(job, self.clock(), attempt)
        if attempt > 1:
            running.doing = f"attempt {attempt}"
        if before is not None and before.attempt == attempt:  # goes on after turns it shared
            running.tokens, running.cost_usd = before.tokens, before.cost_usd
        elif before is not None:  # was spent all the same, and the trial's grade will not have it
            self.tokens = _sum(self.tokens, before.tokens)
            self.cost_usd = _sum(self.cost_usd, before.cost_usd)
        self.running[job.id] = running
        self._at_once = max(self._at_once, len(self.running))

    def hear(self, event: TrialEvent) -> None:
        """Something happens in a trial."""
        running = self.running.get(event.job)
        if running is None:
            return
        many = f" (shared by {event.shared_by} trials)" if event.shared_by > 1 else ""
        if event.kind == "turn_started":
            running.turn, running.turns = event.turn, event.turns
            said = f"{_SIMULATED}{event.text}" if event.text else ""
            running.doing = (said or _WAITING) + many
        elif event.kind == "message_sent" and event.source == "follow_up":
            running.doing = f"follow-up: {event.text}{many}"
        elif event.kind == "message_sent":
            running.calls.clear()
            if not running.doing.startswith(_SIMULATED):  # what that user said stands meanwhile
                running.doing = _WAITING + many
        elif event.kind == "item" and event.item is not None:
            if event.item.tool_call is not None:
                running.calls[event.item.tool_call.id] = ""
            elif event.item.tool_result is not None:
                running.calls.pop(event.item.tool_result.call_id, None)
                running.doing = next(reversed(running.calls.values()), "") or _THINKS + many
        elif event.kind == "activity":
            running.doing = event.text + many
            for call, told in running.calls.items():
                running.calls[call] = told or running.doing
        elif event.kind == "turn_ended":
            running.doing = "between two turns" if event.turn < event.turns else "judging"
            running.tokens = _sum(running.tokens, event.tokens)
            running.cost_usd = _sum(running.cost_usd, event.cost_usd)

    def end(self, job: Job, grade: Grade) -> None:
        """A trial has ended."""
        self._waiting.pop(job.id, None)
        running = self.running.pop(job.id, None)
        self.counts[grade.status] += 1
        if running is not None and grade.status != "SKIP":
            self._pace.add(_like(job), self.clock() - running.began)
        usage = grade.usage or {}
        for name in ("input_tokens", "output_tokens"):
            self.tokens = _sum(self.tokens, usage.get(name))
        self.cost_usd = _sum(self.cost_usd, grade.cost_usd)

    def elapsed(self, since: float | None = None) -> int:
        """Milliseconds since then, or since the beginning."""
        return round((self.clock() - (self.began if since is None else since)) * 1000)

    def spent(self) -> tuple[int | None, float | None]:
        """Tokens and cost so far, running trials included; None: nobody told."""
        tokens, cost = self.tokens, self.cost_usd
        for running in list(self.running.values()):
            tokens, cost = _sum(tokens, running.tokens), _sum(cost, running.cost_usd)
        return tokens, cost

    def seconds_left(self) -> float | None:
        """How long it will go on; None as long as too little is known."""
        now = self.clock()
        running = [(_like(r.job), now - r.began) for r in list(self.running.values())]
        waiting = [_like(job) for job in list(self._waiting.values())]
        return self._pace.left(running, waiting, self._at_once)


def _like(job: Job) -> str:
    """Trials of a case, on an engine, in a variant take about equally long."""
    return job.id.rsplit("/", 1)[0]


def _sum(a: Amount | None, b: Amount | None) -> Amount | None:
    if a is None or b is None:
        return b if a is None else a
    return a + b
