"""Whoever watches a run may fail: then the run ends in order, and no trial answers for it.

Observers are called in the midst of conversations. What they raised there would become an error of
the trial, or break off the event loop while processes are being ended.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable
from typing import Any

from skillup.errors import SkillupError
from skillup.executors.options import RunObserver
from skillup.plan import Job
from skillup.schema.grade import Grade
from skillup.schema.record import Record
from skillup.trial import TrialEvent


class Guarded:
    """Passes on what happens to `observer`, until that fails once; `end` is called then.

    `end` has to end the run, and :meth:`refuse` to be called once it has ended.
    """

    def __init__(self, observer: RunObserver, end: Callable[[], None]) -> None:
        self._observer = observer
        self._end = end
        self._failure: BaseException | None = None

    def refuse(self) -> None:
        """Raises SkillupError, which says where and why, if the observer has failed."""
        if self._failure is not None:
            raise _error_of(self._failure) from self._failure

    def trial_started(self, job: Job, attempt: int) -> None:
        """See :class:`RunObserver`."""
        self._tell(self._observer.trial_started, job, attempt)

    def trial_event(self, event: TrialEvent) -> None:
        """See :class:`RunObserver`."""
        self._tell(self._observer.trial_event, event)

    def trial_finished(self, job: Job, record: Record, grade: Grade) -> None:
        """See :class:`RunObserver`."""
        self._tell(self._observer.trial_finished, job, record, grade)

    def trial_retried(self, job: Job, record: Record, reason: str) -> None:
        """See :class:`RunObserver`."""
        self._tell(self._observer.trial_retried, job, record, reason)

    def trial_lost(self, job: Job, worker: str, reason: str) -> None:
        """See :class:`RunObserver`."""
        self._tell(self._observer.trial_lost, job, worker, reason)

    def _tell(self, method: Callable[..., None], *about: Any) -> None:
        if self._failure is not None:
            return
        try:
            method(*about)
        # Whatever it is; a console of rich's leaves by SystemExit when nobody reads it.
        except (Exception, SystemExit) as failure:  # noqa: BLE001
            self._failure = failure
            self._end()


def _error_of(failure: BaseException) -> SkillupError:
    frames = traceback.extract_tb(failure.__traceback__)
    where = f" ({frames[-1].filename}:{frames[-1].lineno}, in {frames[-1].name})" if frames else ""
    what = f"{type(failure).__name__}: {failure}".rstrip(": ")
    return SkillupError(
        f"the run was ended, because what shows it failed: {what}{where}",
        hint="finished trials are kept; go on with --resume",
    )
