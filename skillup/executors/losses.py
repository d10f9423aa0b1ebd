"""Trials that were lost with their worker: the result warns of it, however often it went on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from skillup.executors.stopping import Stopping
from skillup.store import RunDirectory

_EVENT = "trial_lost"


def note_loss(
    directory: RunDirectory,
    stopping: Stopping,
    jobs: Iterable[str],
    reason: str,
    worker: str | None = None,
) -> None:
    """Have the journal and the result's warnings tell of it.

    `worker` is its address; None: the connection to all of them broke.
    """
    told: dict[str, Any] = (
        {"reason": reason} if worker is None else {"worker": worker, "reason": reason}
    )
    for job in jobs:
        directory.journal(_EVENT, job=job, **told)
    stopping.note(_warning(told))


def recall_losses(events: Iterable[Mapping[str, Any]], stopping: Stopping) -> None:
    """Those that earlier starts of the run have noted are warned of, too."""
    for event in events:
        if event.get("event") == _EVENT and "reason" in event:
            stopping.note(_warning(event))


def _warning(told: Mapping[str, Any]) -> str:
    if "worker" in told:
        return f"worker {told['worker']}: {told['reason']}; trials there were lost"
    return f"{told['reason']}: trials that were running then began again"
