"""When a run starts no more trials: its budgets, its time, too many bad trials, no quota left."""

from __future__ import annotations

import time
from dataclasses import dataclass

from skillup.schema.grade import Grade, Stop


@dataclass(frozen=True, slots=True)
class Limits:
    """What a run may take; None: as much as it needs. Trials that are running are not cut off."""

    max_fail: int | None = None
    """Trials that failed or met an error."""
    max_cost_usd: float | None = None
    """Agents, judges and simulated users together, as far as they tell."""
    max_tokens: int | None = None
    """Input and output, of agents, judges and simulated users together."""
    time_limit_seconds: float | None = None
    """From the start (or the resuming) of the run."""


class Stopping:
    """Counts what finished trials took; says when it is enough, and why."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._started = time.monotonic()
        self._bad = 0
        self._reason: Stop | None = None

    @property
    def reason(self) -> Stop | None:
        """Why no more trials are started; None: more are."""
        limit = self._limits.time_limit_seconds
        if self._reason is None and limit is not None:
            passed = time.monotonic() - self._started
            if passed >= limit:
                self.stop(Stop(kind="time_limit", message=f"the time limit of {limit:g} s is up"))
        return self._reason

    def stop(self, reason: Stop) -> None:
        """Start no more trials; the first reason stands."""
        self._reason = self._reason or reason

    def count(self, grade: Grade) -> None:
        """A trial has finished."""
        self._bad += grade.status in ("FAIL", "ERROR")
        limit = self._limits.max_fail
        if limit is not None and self._bad >= limit:
            many = "1 trial" if self._bad == 1 else f"{self._bad} trials"
            self.stop(Stop(kind="max_fail", message=f"{many} failed or met an error"))
