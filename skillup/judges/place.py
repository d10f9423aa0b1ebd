"""What judges that start programs need to know of where they run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from skillup.judges.models.stored import AnswerCache
from skillup.process.secrets import NO_SECRETS, Secrets
from skillup.schema.profile import Profile
from skillup.trial.pacing import Pacing


@dataclass(frozen=True, slots=True)
class JudgePlace:
    """Where a script or an agent judges, and whom it may ask."""

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
    pacing: Pacing
    """The ways to the providers of agents, shared with whoever else asks them."""
    answers: AnswerCache | None = None
    """What agents have answered; None: nothing is kept."""
    secrets: Secrets = NO_SECRETS
    """What nothing of the run may show, nor the raw streams of its agents."""
