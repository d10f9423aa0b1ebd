"""Noting down what another process needs to go on with a conversation."""

from __future__ import annotations

import anyio.to_thread

from skillup.schema.checkpoint import Checkpoint
from skillup.schema.record import Record
from skillup.schema.simulation import needs_simulator
from skillup.trial.keeper import Keeper, what_was_asked
from skillup.trial.message import LiveSession
from skillup.trial.request import TrialRequest


def may_be_noted(request: TrialRequest) -> bool:
    """Whether the trial can be gone on with by another process at all.

    What a simulated user would say next is not known to anybody else, and shared turns belong to
    several trials.
    """
    job = request.job
    return (
        request.note_down is not None
        and not job.family
        and job.profile.isolation == "clean"
        and not needs_simulator(job.loaded.case)
    )


async def note_down(
    request: TrialRequest,
    keeper: Keeper,
    live: LiveSession,
    record: Record,
    variables: dict[str, str],
    elapsed_ms: int,
    held_seconds: float,
) -> None:
    """Have the trial noted down as it is, after a turn; nothing is noted if it is not all known.

    `record` has the turns so far.
    """
    if request.note_down is None or not may_be_noted(request):
        return
    kept = await keeper.keep()
    if kept.home is None or kept.workspace is None or kept.fingerprint is None:
        return
    workspace = live.context.workspace
    skills = {
        name: path.relative_to(workspace).as_posix()
        for name, path in live.context.skills.items()
        if path.is_relative_to(workspace)
    }
    noted = Checkpoint(
        record=record,
        variables=dict(variables),
        messages=kept.messages,
        session=kept.fingerprint,
        chosen_session_id=live.context.session_id,
        skills=skills,
        home_copy=kept.home.slot,
        home_sha256=kept.home.sha256,
        workspace_sha256=kept.workspace,
        asked_sha256=what_was_asked(request),
        elapsed_ms=elapsed_ms,
        held_seconds=held_seconds,
    )
    await anyio.to_thread.run_sync(request.note_down, noted)
    keeper.copies.pin(kept.home)
