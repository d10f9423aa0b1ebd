"""Time left: a turn's own limit within the whole conversation's."""

from __future__ import annotations

import time
from dataclasses import dataclass


@dataclass(slots=True)
class Deadline:
    """The moment (of the monotonic clock) at which a conversation must end; None: never."""

    at: float | None
    postponed: float = 0.0
    """By so many seconds, so far."""

    @classmethod
    def after(cls, seconds: float | None, *, used: float = 0.0) -> Deadline:
        """`seconds` from now, less those that are `used` up already."""
        return cls(None if seconds is None else time.monotonic() + seconds - used)

    def limit(self, seconds: float) -> float:
        """`seconds`, or what is left if that is less; never below 0."""
        if self.at is None:
            return seconds
        return max(0.0, min(seconds, self.at - time.monotonic()))

    def postpone(self, seconds: float) -> None:
        """What took so long does not count."""
        self.postponed += seconds
        if self.at is not None:
            self.at += seconds
