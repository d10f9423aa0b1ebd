"""When a run starts no more trials: its budgets, its time, too many bad trials, no quota left."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from skillup.schema.grade import BASELINE, Grade, Judging, Stop
from skillup.schema.record import Record, SimulatorInfo, TurnRecord, Usage

# What trials took of money and tokens, as far as it is told; what is shared counts once.

_Taken = tuple[str, float | None, Usage | None]
"""Who, and how much: USD and tokens, as far as it is told."""


@dataclass(slots=True)
class Spent:
    """One kind of spending: USD, or tokens."""

    total: float = 0.0
    trials: int = 0
    """Finished trials that told what they took."""
    of_trials: float = 0.0
    """What those took, without attempts that were given up."""
    untold: dict[str, None] = field(default_factory=dict)
    """Who took something and did not say how much, each once."""

    def average(self) -> float:
        """Of a finished trial; 0 before there is one."""
        return self.of_trials / self.trials if self.trials else 0.0

    def has_reached(self, limit: float, more: float = 0.0) -> bool:
        """Whether `limit` is spent, or would be with so much `more`.

        Ten times 0.1 is a hair less than 1.0, and yet all of it.
        """
        return self.total + more >= limit * (1 - 1e-9)

    def add(
        self, parts: Iterator[tuple[str, float | None]], *, finished: bool, shared: bool = False
    ) -> None:
        """What the `parts` of a trial took; a trial without any does not count.

        What is `shared` belongs to trials that are counted when they have finished.
        """
        told: list[float] = []
        for who, amount in parts:
            if amount is None:
                self.untold[who] = None
            else:
                told.append(amount)
        self.total += sum(told)
        if shared or (finished and told):
            self.trials += not shared
            self.of_trials += sum(told)


class UsageBudget:
    """The accounts of one run: agents, judges and simulated users together."""

    def __init__(self) -> None:
        self.cost_usd = Spent()
        self.tokens = Spent()
        self._counted: set[tuple[str | None, int, str | None]] = set()

    def add(self, record: Record, grade: Grade | None) -> None:
        """What a trial took; without a grade it is an attempt that is tried again."""
        judging = grade.judging if grade is not None else record.judging
        taken = [*self._by_turns(record), *_by_judges(judging)]
        self._enter(taken, finished=grade is not None)

    def add_shared(self, profile: str, turns: Sequence[TurnRecord]) -> None:
        """What turns took that were held for several trials; no record has them yet, or one may."""
        self._enter(list(self._by_engine(profile, turns)), finished=False, shared=True)

    def _enter(self, taken: Sequence[_Taken], *, finished: bool, shared: bool = False) -> None:
        usd = ((who, cost) for who, cost, _ in taken)
        self.cost_usd.add(usd, finished=finished, shared=shared)
        tokens = ((who, usage.tokens() if usage is not None else None) for who, _, usage in taken)
        self.tokens.add(tokens, finished=finished, shared=shared)

    def _by_turns(self, record: Record) -> Iterator[_Taken]:
        """Agent and simulated user, in turns that no other record has had counted."""
        yield from self._by_engine(record.engine.profile, record.turns)
        if record.simulated_end is not None:
            yield from _by_user(record.simulated_end.info)

    def _by_engine(self, profile: str, turns: Sequence[TurnRecord]) -> Iterator[_Taken]:
        engine = f"the engine {profile}"
        for turn in turns:
            name = (turn.session_id, turn.turn_number, turn.started_at)
            if turn.held_by is not None or name in self._counted:
                continue
            if turn.session_id is not None:
                self._counted.add(name)
            yield from _by_user(turn.simulator)
            for step in turn.executed():
                if step.status == "completed":
                    yield engine, step.cost_usd, step.usage
                elif step.cost_usd is not None or step.usage is not None:
                    # What was broken off may tell a part only, whoever the engine is.
                    yield engine, step.cost_usd or 0.0, step.usage or Usage(input_tokens=0)


def _by_judges(judging: Judging | None) -> Iterator[_Taken]:
    if judging is not None and judging.calls > judging.cached_calls:
        usage = Usage(**judging.usage) if judging.usage else None
        yield _named("judge", judging.models), judging.cost_usd, usage


def _by_user(info: SimulatorInfo | None) -> Iterator[_Taken]:
    if info is not None and not info.cached:
        names = [info.model] if info.model is not None else []
        yield _named("simulated user", names), info.cost_usd, info.usage


def _named(what: str, models: list[str]) -> str:
    return f"the {what} {' and '.join(models)}" if models else f"the {what}"


@dataclass(frozen=True, slots=True)
class RunLimits:
    """What a run may take; None: as much as it needs. Trials that are running are not cut off."""

    max_fail: int | None = None
    """Trials that failed with the skill, or met an error."""
    max_cost_usd: float | None = None
    """Agents, judges and simulated users together, as far as they tell."""
    max_tokens: int | None = None
    """Input and output, of agents, judges and simulated users together."""
    time_limit_seconds: float | None = None
    """From the start (or the resuming) of the run."""


class StopPolicy:
    """Counts what finished trials took; says when it is enough, and why.

    Trials of an earlier start of the run count, too; of its time only this start's does.
    """

    def __init__(
        self, limits: RunLimits | None = None, warn: Callable[[str], None] = lambda _: None
    ) -> None:
        """`warn` is told, once each, of those that a budget cannot count."""
        self.limits = limits or RunLimits()
        self.warnings: list[str] = []
        """About the whole run: of those, and what was noted."""
        self._warn = warn
        self._started = time.monotonic()
        self._bad = 0
        self._spending = UsageBudget()
        self._reason: Stop | None = None
        self._look_at_budgets()

    @property
    def reason(self) -> Stop | None:
        """Why no more trials are started; None: more are."""
        limit = self.limits.time_limit_seconds
        if self._reason is None and limit is not None:
            passed = time.monotonic() - self._started
            if passed >= limit:
                self.stop(Stop(kind="time_limit", message=f"the time limit of {limit:g} s is up"))
        return self._reason

    def note(self, warning: str) -> None:
        """Have the result warn of something, once."""
        if warning not in self.warnings:
            self.warnings.append(warning)

    def spent(self) -> tuple[float, int]:
        """USD and tokens, as far as they were told."""
        return self._spending.cost_usd.total, round(self._spending.tokens.total)

    def stop(self, reason: Stop) -> None:
        """Start no more trials; the first reason stands."""
        self._reason = self._reason or reason

    def end_for_quota(self, why: str) -> None:
        """Start no more trials: their provider accepts nothing more."""
        self.stop(Stop(kind="quota", message=why))

    def count(self, record: Record, grade: Grade) -> None:
        """A trial has finished."""
        # That the agent fails without the skill is what a baseline is there to show.
        baseline = grade.variant == BASELINE
        self._bad += grade.status == "ERROR" or (grade.status == "FAIL" and not baseline)
        limit = self.limits.max_fail
        if limit is not None and self._bad >= limit:
            many = "1 trial" if self._bad == 1 else f"{self._bad} trials"
            self.stop(Stop(kind="max_fail", message=f"{many} failed or met an error"))
        self._spending.add(record, grade)
        self._look_at_budgets()

    def count_attempt(self, record: Record) -> None:
        """An attempt was given up, and is tried again: what it took was taken."""
        self._spending.add(record, None)
        self._look_at_budgets()

    def count_shared(self, profile: str, turns: Sequence[TurnRecord]) -> None:
        """Turns were held for several trials, on the engine of `profile`.

        They count at once, and no more with the record that has them.
        """
        self._spending.add_shared(profile, turns)
        self._look_at_budgets()

    def leaves_room(self, running: int) -> bool:
        """Whether the budgets are likely to leave something for one trial beside `running` others.

        Each of those is taken to need what an average finished one took. True if it is enough
        anyway: then there is nothing to wait for.
        """
        if self.reason is not None:
            return True
        return all(
            not account.has_reached(limit, running * account.average())
            for limit, account in self._budgets().values()
        )

    def _budgets(self) -> dict[str, tuple[float, Spent]]:
        """By option, those that are given: the limit, and what counts."""
        accounts = {
            "--max-cost-usd": (self.limits.max_cost_usd, self._spending.cost_usd),
            "--max-tokens": (self.limits.max_tokens, self._spending.tokens),
        }
        return {
            name: (limit, account)
            for name, (limit, account) in accounts.items()
            if limit is not None
        }

    def _look_at_budgets(self) -> None:
        for option, (limit, account) in self._budgets().items():
            what = "cost" if option == "--max-cost-usd" else "tokens"
            for who in account.untold:
                text = f"{who} tells no {what}, so {option} cannot count what it takes"
                if text not in self.warnings:
                    self.warnings.append(text)
                    self._warn(text)
            if account.has_reached(limit):
                stop = _used_up(option, limit, account.total)
                if self._reason is not None and self._reason.kind == stop.kind:
                    self._reason = stop  # with what trials took that were running still
                self.stop(stop)


def _used_up(option: str, limit: float, taken: float) -> Stop:
    if option == "--max-cost-usd":
        text = f"the budget of {_usd(limit)} USD is spent ({_usd(taken)} USD)"
        return Stop(kind="max_cost_usd", message=text)
    text = f"the budget of {limit:.0f} tokens is used up ({taken:.0f})"
    return Stop(kind="max_tokens", message=text)


def _usd(amount: float) -> str:
    if 0 < amount < 0.0001:
        return f"{amount:.2g}"
    return f"{amount:.4f}" if 0 < amount < 0.1 else f"{amount:.2f}"
