"""When a run starts no more trials: budgets, time, too many bad ones, no quota, all decided."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Any

from skillup.dataclass import mutable
from skillup.plan import Job
from skillup.schema.grade import BASELINE, Grade, Judging, Stop
from skillup.schema.record import Record, Usage

if TYPE_CHECKING:  # `skillup.stats` is imported late: few runs need it
    from skillup.stats import Side


@mutable
class Budget:
    """One kind of usage, USD or tokens, and its limit."""

    option: str
    unit: str
    limit: float | None
    total: float = 0.0
    trials: int = 0  # Finished trials that reported what they used
    of_trials: float = 0.0  # What those used, without attempts that were given up
    unreported: dict[str, None] = field(default_factory=dict)
    """Who used something and did not say how much, each once."""

    def add(self, parts: Sequence[tuple[str, float | None]], *, finished: bool) -> None:
        """What the `parts` of a trial used; a trial without any does not count."""
        known = [amount for _, amount in parts if amount is not None]
        self.unreported |= {who: None for who, amount in parts if amount is None}
        self.total += sum(known)
        if finished and known:
            self.trials += 1
            self.of_trials += sum(known)

    def is_reached(self, running: int = 0) -> bool:
        """Whether it is spent, or would be by `running` trials that use an average each."""
        if self.limit is None:
            return False
        average = self.of_trials / self.trials if self.trials else 0.0
        # Ten times 0.1 is a hair less than 1.0, and yet all of it.
        return self.total + running * average >= self.limit * (1 - 1e-9)


class StopPolicy:
    """Counts what finished trials used, also in earlier starts; says when it is enough, and why.

    What is shared by trials counts once; time counts from this start.
    """

    def __init__(
        self,
        warn: Callable[[str], None] = lambda _: None,
        *,
        max_fail: int | None = None,
        max_cost_usd: float | None = None,
        max_tokens: int | None = None,
        time_limit: float | None = None,
    ) -> None:
        """Limits of None: none. `warn` is called, once each, for those that cannot be counted."""
        self.warnings: list[str] = []  # About the whole run
        self._warn, self._max_fail, self._time_limit = warn, max_fail, time_limit
        self._started, self._bad = time.monotonic(), 0
        self.cost = Budget("--max-cost-usd", "cost", max_cost_usd)
        self.tokens = Budget("--max-tokens", "tokens", max_tokens)
        self._reason: Stop | None = None
        self._check_budgets()

    def note(self, text: str) -> None:
        """A warning about the whole run, once."""
        if text not in self.warnings:
            self.warnings.append(text)
            self._warn(text)

    @property
    def reason(self) -> Stop | None:
        """Why no more trials are started; None: more are."""
        limit = self._time_limit
        if limit is not None and time.monotonic() - self._started >= limit:
            self.stop(Stop(kind="time_limit", message=f"the time limit of {limit:g} s is up"))
        return self._reason

    def stop(self, reason: Stop) -> None:
        """Start no more trials; the first reason stands."""
        self._reason = self._reason or reason

    def count(self, record: Record, grade: Grade | None) -> None:
        """A trial has finished; without a grade: an attempt that is given up."""
        if grade is not None:
            # That the agent fails without the skill is what a baseline is there to show.
            baseline = grade.variant == BASELINE
            self._bad += grade.status == "ERROR" or (grade.status == "FAIL" and not baseline)
            if self._max_fail is not None and self._bad >= self._max_fail:
                many = "1 trial" if self._bad == 1 else f"{self._bad} trials"
                self.stop(Stop(kind="max_fail", message=f"{many} failed or met an error"))
        used = list(_used(record, grade.judging if grade is not None else record.judging))
        finished = grade is not None
        self.cost.add([(who, usd) for who, usd, _ in used], finished=finished)
        self.tokens.add([(who, n) for who, _, n in used], finished=finished)
        self._check_budgets()

    def has_room(self, running: int) -> bool:
        """Whether budgets leave something for one trial beside `running` ones, or it is enough."""
        reached = self.cost.is_reached(running) or self.tokens.is_reached(running)
        return self.reason is not None or not reached

    def _check_budgets(self) -> None:
        for budget in (self.cost, self.tokens):
            if budget.limit is None:
                continue
            unit, option = budget.unit, budget.option
            for who in budget.unreported:
                self.note(f"{who} reports no {unit}, so {option} cannot count what it uses")
            if budget.is_reached():
                shown = _usd if unit == "cost" else "{:.0f} tokens".format
                spent = f"{shown(budget.limit)} is spent ({shown(budget.total)})"
                kind = "max_cost_usd" if unit == "cost" else "max_tokens"
                stop = Stop(kind=kind, message=f"the budget of {spent}")
                if self._reason is not None and self._reason.kind == stop.kind:
                    self._reason = stop  # with what trials used that were running still
                self.stop(stop)


def _used(
    record: Record, judging: Judging | None
) -> Iterator[tuple[str, float | None, int | None]]:
    """Who used how many USD and tokens (None: not reported), but in turns counted elsewhere."""
    own = [turn for turn in record.turns if turn.counted_by is None]
    engine = f"the engine {record.engine.profile}"
    for step in (step for turn in own for step in turn.executed()):
        tokens = step.usage.tokens() if step.usage is not None else None
        if step.status == "completed":
            yield engine, step.cost_usd, tokens
        elif step.cost_usd is not None or step.usage is not None:
            # What was broken off may report a part only, whoever the engine is.
            yield engine, step.cost_usd or 0.0, 0 if step.usage is None else tokens
    users = [turn.simulator for turn in own]
    users += [record.simulated_end.info] if record.simulated_end is not None else []
    for info in users:
        if info is not None and not info.cached:
            who = f"the simulated user {info.model or ''}".rstrip()
            yield who, info.cost_usd, info.usage.tokens() if info.usage is not None else None
    if judging is not None and judging.calls > judging.cached_calls:
        usage = Usage(**judging.usage).tokens() if judging.usage else None
        yield f"the judge {' and '.join(judging.models)}".rstrip(), judging.cost_usd, usage


def _usd(amount: float) -> str:
    return f"{amount:.2g} USD" if 0 < amount < 0.1 else f"{amount:.2f} USD"


# `--until-decided`.


@mutable
class CaseTest:
    """The test of one case, on one engine, in one variant."""

    names: tuple[str, str, str, str]  # Of suite, case, engine and variant
    threshold: float
    trials: deque[int] = field(default_factory=deque)  # In order, those not looked at yet
    side: Side = "undecided"
    passes: int = 0
    failures: int = 0
    _ended: dict[int, bool | None] = field(default_factory=dict)

    def count(self, trial: int, status: str) -> None:
        """A trial has ended; an error, and a skip, say nothing of the pass rate.

        Looked at in the order of the trials: one that fails may take longer than one that passes.
        """
        self._ended[trial] = {"PASS": True, "FAIL": False}.get(status)
        while self.side == "undecided" and self.trials and self.trials[0] in self._ended:
            outcome = self._ended[self.trials.popleft()]
            if outcome is not None:
                self.passes, self.failures = self.passes + outcome, self.failures + (not outcome)
                from skillup.stats import side_of

                self.side = side_of(self.passes, self.failures, self.threshold)

    def about(self) -> dict[str, Any]:
        """For the journal."""
        from skillup.stats import ERROR_RATE

        return {
            **dict(zip(("suite", "case", "engine", "variant"), self.names, strict=True)),
            "verdict": self.side,
            "threshold": self.threshold,
            "error_rate": ERROR_RATE,
            "trials": self.passes + self.failures,
            "passed": self.passes,
        }


class EarlyStopping:
    """The tests of all cases of a plan."""

    def __init__(self, jobs: Iterable[Job], run_info: Mapping[str, Any]) -> None:
        """`run_info` is what the run says: suites may have been edited since the run began."""
        self.tests: dict[tuple[str, str, str, str], CaseTest] = {}  # In the order of the plan
        self._by_job: dict[str, CaseTest] = {}
        self._dependents: dict[str, list[str]] = {}
        for job in jobs:
            threshold = threshold_of(job.suite.name, run_info)
            names = (job.suite.name, job.loaded.id, job.profile.name, job.variant)
            key = (str(job.suite.path), *names[1:])
            test = self.tests.setdefault(key, CaseTest(names, threshold))
            test.trials.append(job.trial)
            self._by_job[job.id] = test
            for needed in job.depends_on:
                self._dependents.setdefault(needed, []).append(job.id)

    def count(self, job: Job, grade: Grade) -> CaseTest | None:
        """A trial has ended; its case's test, if that has just been decided."""
        test = self._by_job[job.id]
        before = test.side
        test.count(job.trial, grade.status)
        return test if before == "undecided" and test.side != "undecided" else None

    def needs(self, job: Job) -> bool:
        """Whether the trial may still say something: of its case, or of one that depends on it."""
        waiting, seen = [job.id], {job.id}
        while waiting:
            current = waiting.pop()
            if self._by_job[current].side == "undecided":
                return True
            others = [name for name in self._dependents.get(current, ()) if name not in seen]
            seen.update(others)
            waiting += others
        return False


def threshold_of(suite: str, run_info: Mapping[str, Any]) -> float:
    """The pass rate that the suite's cases are compared with, by what the run says."""
    from skillup.stats import pass_rate_threshold

    gates = ((run_info.get("suites") or {}).get(suite) or {}).get("gates") or {}
    given = (run_info.get("request") or {}).get("pass_rate")
    return pass_rate_threshold(given, gates.get("min_pass_rate"))
