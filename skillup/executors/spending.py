"""What trials took of money and tokens, as far as it is told; what is shared counts once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from skillup.schema.grade import Grade, Judging
from skillup.schema.record import Record, SimulatorInfo, TurnRecord, Usage

_Taken = tuple[str, float | None, Usage | None]
"""Who, and how much: USD and tokens, as far as it is told."""


@dataclass(slots=True)
class Account:
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


class Spending:
    """The accounts of one run: agents, judges and simulated users together."""

    def __init__(self) -> None:
        self.cost_usd = Account()
        self.tokens = Account()
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
