"""How a run is asked for, and who observes it."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from skillup.errors import SkillupError
from skillup.executors.budgets import StopPolicy
from skillup.plan import Job
from skillup.ratelimit import RateLimiter
from skillup.redaction.secrets import Secrets
from skillup.schema.grade import Grade
from skillup.schema.record import Record
from skillup.store.scratch import user_directory
from skillup.trial import TrialEvent

if TYPE_CHECKING:
    from skillup.executors.early_stopping import EarlyStopping
    from skillup.judges.evaluate import Judge
    from skillup.simulator import SimulatorFactory


@dataclass(frozen=True, slots=True)
class RunOptions:
    """How a plan is run."""

    run_id: str
    environment: Mapping[str, str]
    """The user's own environment."""
    secrets: Secrets
    parallel: int = 4
    """Trials at once."""
    stopping: StopPolicy = field(default_factory=StopPolicy)
    """When no more trials are started; afterwards, why none were."""
    deciding: EarlyStopping | None = None
    """Which trials need not be run (`--until-decided`); None: all of them are."""
    rate_limiter: RateLimiter = field(default_factory=partial(RateLimiter, 0.0))
    """How rate limits and overload are waited out; as it is: they are errors at once.

    Who judges the run's trials, or plays their users, has the same.
    """
    variables: Mapping[str, str] = field(default_factory=dict)
    seed: int = 0
    """Of what scripted engines draw; each trial draws its own. 0: the same in every run."""
    register_dir: Path = field(default_factory=partial(user_directory, "processes"))
    """Where this process is known as a live owner of the agents it starts."""
    own_process: bool = False
    """Nobody else starts processes in this one; see :class:`~skillup.process.process_register`."""
    reader: Judge | None = None
    """Answers what only a judge can evaluate; None: such checks are errors."""
    simulators: SimulatorFactory | None = None
    """Knows who plays simulated users; None: nobody, and cases that need one are errors."""
    judge_again: Collection[str] = ()
    """Finished jobs whose grade does not stand (`--retry-errors`)."""
    keep_scratch: bool = False
    """Leave workspaces and homes in place after their trial."""


class RunObserver(Protocol):
    """Sees everything as it happens. If it raises, the run ends: nobody sees it any more."""

    def trial_started(self, job: Job, attempt: int) -> None:
        """A trial's workspace is about to be made."""

    def trial_event(self, event: TrialEvent) -> None:
        """Something happened in a trial."""

    def trial_finished(self, job: Job, record: Record, grade: Grade) -> None:
        """A trial's record and grade are on disk."""

    def trial_retried(self, job: Job, record: Record, reason: str) -> None:
        """A trial met an error and runs again."""


class SafeObserver:
    """Passes on what happens to `observer`, until that fails once; `end` is called then.

    `end` has to end the run, and :meth:`raise_failure` to be called once it has ended.
    """

    def __init__(self, observer: RunObserver, end: Callable[[], None]) -> None:
        self._observer = observer
        self._end = end
        self._failure: BaseException | None = None

    def raise_failure(self) -> None:
        """Raises SkillupError, which says where and why, if the observer has failed."""
        failure = self._failure
        if failure is None:
            return
        frames = traceback.extract_tb(failure.__traceback__)
        last = frames[-1] if frames else None
        where = f" ({last.filename}:{last.lineno}, in {last.name})" if last else ""
        what = f"{type(failure).__name__}: {failure}".rstrip(": ")
        raise SkillupError(
            f"the run was ended, because what shows it failed: {what}{where}",
            hint="finished trials are kept; go on with --resume",
        ) from failure

    def __getattr__(self, name: str) -> Callable[..., None]:
        """A method of :class:`RunObserver` that never raises."""
        return partial(self._call, getattr(self._observer, name))

    def _call(self, method: Callable[..., None], *about: Any) -> None:
        if self._failure is not None:
            return
        try:
            method(*about)
        # Whatever it is; a console of rich's leaves by SystemExit when nobody reads it.
        except (Exception, SystemExit) as failure:  # noqa: BLE001
            self._failure = failure
            self._end()
