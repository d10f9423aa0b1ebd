"""Where scripts and agents judge, and whom they may ask."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from skillup.judges.models.cache import AnswerCache
from skillup.ratelimit import RateLimiter
from skillup.redaction.secrets import NO_SECRETS, Secrets
from skillup.schema.profile import Profile


@contextmanager
def judge_scratch() -> Iterator[str]:
    """A new directory among the system's temporary ones, until the context is left."""
    # What a judge leaves there, whoever owns it, is no reason to lose the verdict.
    with tempfile.TemporaryDirectory(prefix="skillup-judge-", ignore_cleanup_errors=True) as path:
        yield path


@dataclass(frozen=True, slots=True)
class JudgePlace:
    """What judges that start programs need to know of where they run."""

    environment: Mapping[str, str]
    """The user's own environment."""
    mask: Callable[[str], str]
    """Hides the secrets of a text that will be kept or shown."""
    scratch: Path
    """An empty directory of this judging alone; whoever made it removes it."""
    profiles: Callable[[str | None], Profile]
    """A profile by its name; None: the record's own. Raises UsageError if there is none."""
    suite_root: Path
    """What the paths of the case are relative to; it need not be there any more."""
    rate_limiter: RateLimiter
    """The ways to the providers of agents, shared with whoever else asks them."""
    answers: AnswerCache | None = None
    """What agents have answered; None: nothing is kept."""
    secrets: Secrets = NO_SECRETS
    """What nothing of the run may show, nor the raw streams of its agents."""
