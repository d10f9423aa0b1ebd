"""How long a model that is out of breath is waited for."""

from __future__ import annotations

import random
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Patience:
    """A fixed number of attempts at each request, and the waits between them, in seconds.

    Refusals (rate limit, overload) are no attempts, where they are waited out by all who ask there
    (:class:`skillup.trial.pacing.Pacing`).
    """

    attempts: int = 4
    first_wait: float = 1.0
    """Before the second attempt; each later wait is twice as long."""
    longest_wait: float = 30.0
    longest_asked_wait: float = 60.0
    """A server that asks (``Retry-After``) for a longer one is not waited for at all."""

    def wait_before(self, attempt: int, asked: float | None) -> float | None:
        """The wait before `attempt` (2, 3, …); None: not to be tried any more.

        The server's wish `asked` is a lower bound. A random part keeps those apart that were
        refused together.
        """
        if attempt > self.attempts or (asked or 0.0) > self.longest_asked_wait:
            return None
        longest = min(self.longest_wait, self.first_wait * 2.0 ** (attempt - 2))
        wait = longest * random.uniform(0.5, 1.0)  # noqa: S311  no secret depends on it
        return max(wait, (asked or 0.0) + 0.1 * wait)
