"""What a unit of a cluster's run says of its trials, and how it notices that it is left alone."""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

from pydantic import TypeAdapter

from skillup.plan import Job
from skillup.schema.grade import Grade
from skillup.schema.record import Record
from skillup.trial import TrialEvent

_LOOK_SECONDS = 0.5
_PATIENCE_SECONDS = 60.0
_ACTIVITY_SECONDS = 0.5
"""For the eye: more often than this need nobody know what an agent is doing."""
_EVENT: TypeAdapter[TrialEvent] = TypeAdapter(TrialEvent)


def watch_parent(parent: int) -> None:
    """From now on, end this process as Ctrl-C would once `parent` is not its parent any more."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(_LOOK_SECONDS)
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(_PATIENCE_SECONDS)
        os.kill(os.getpid(), signal.SIGKILL)

    threading.Thread(target=watch, daemon=True).start()


class UnitReports:
    """The run's observer: a line of JSON on stdout for each thing that happens, secrets masked."""

    def __init__(self, mask: Callable[[str], str]) -> None:
        self._mask = mask
        self._last_activity: dict[str, float] = {}

    def trial_started(self, job: Job, attempt: int) -> None:
        """``{"event": "started", "job", "attempt"}``."""
        self.say({"event": "started", "job": job.id, "attempt": attempt})

    def trial_event(self, event: TrialEvent) -> None:
        """``{"event": "trial", "of": the event}``."""
        if event.kind == "activity":
            now, last = time.monotonic(), self._last_activity.get(event.job, 0.0)
            if now - last < _ACTIVITY_SECONDS:
                return
            self._last_activity[event.job] = now
        self.say({"event": "trial", "of": _EVENT.dump_python(event, mode="json")})

    def trial_finished(self, job: Job, record: Record, grade: Grade) -> None:  # noqa: ARG002  as all observers
        """``{"event": "finished", "job"}``: the client may have it sent before the others end."""
        self.say({"event": "finished", "job": job.id})

    def turns_shared(self, costs: Mapping[str, Any]) -> None:
        """``{"event": "shared", "costs"}``, see :mod:`skillup.executors.shared_prefix`."""
        self.say({"event": "shared", "costs": costs})

    def trial_retried(self, job: Job, record: Record, reason: str) -> None:
        """Nothing: the client says so, once it has the record."""

    def trial_lost(self, job: Job, worker: str, reason: str) -> None:
        """Nothing: only the client can know."""

    def say(self, event: dict[str, Any]) -> None:
        """Write one; nobody may be there to read it."""
        try:
            sys.stdout.write(self._mask(json.dumps(event)) + "\n")
            sys.stdout.flush()
        except (BrokenPipeError, ValueError):
            pass  # nobody listens; the trial goes on, or is ended in a moment


def event_of(said: dict[str, Any]) -> TrialEvent:
    """The event in a line that :class:`UnitReports` wrote."""
    return _EVENT.validate_python(said)
