"""Going on with a conversation that another process began, from what it noted down.

That is done only if all is as it was after the last turn that is noted down: else it would be
another conversation. Its session files are cut back to what they held then.
"""

from __future__ import annotations

import anyio.to_thread

from skillup.engines.base import SessionRef
from skillup.process import new_marker
from skillup.schema.record import Checkpoint, Record, TurnError, TurnRecord
from skillup.trial.artifacts import set_aside_from
from skillup.trial.history import past_of, with_unanswered
from skillup.trial.message import LiveSession, look_at
from skillup.trial.request import TrialRequest
from skillup.trial.setup import Opened, context_of, extra_variables
from skillup.trial.state_backup import rewind_sessions, what_was_asked, workspace_signature
from skillup.workspace.failures import refuse_full_disk


async def resume_trial(request: TrialRequest, noted: Checkpoint) -> Opened | str:
    """The trial, ready for its next turn; or why it must be begun anew. Raises FullDiskError."""
    try:
        return await _take_up(request, noted)
    except OSError as refused:
        refuse_full_disk(refused, request.scratch)
        return f"what it left could not be read: {refused.strerror or refused}"


async def _take_up(request: TrialRequest, noted: Checkpoint) -> Opened | str:
    problem = await anyio.to_thread.run_sync(_put_back, request, noted)
    if problem is not None:
        return problem
    added = extra_variables(request)
    if isinstance(added, TurnError):
        return added.message
    case = request.job.loaded.case
    known = {**case.vars, **request.variables}
    past = await anyio.to_thread.run_sync(past_of, case.input, known)
    workspace, home = (request.scratch / name for name in ("workspace", "home"))
    context = context_of(
        request,
        workspace.resolve(),
        home.resolve(),
        added,
        {name: workspace.resolve() / path for name, path in noted.skills.items()},
        noted.chosen_session_id,
        new_marker(),
    )
    snapshot = await look_at(context.workspace, request.blobs)
    held = noted.record.turns
    if held[-1].last_answer().files != dict(snapshot.files):
        return "the files of its workspace are not those that the last turn left"
    await anyio.to_thread.run_sync(set_aside_from, request.raw_dir, len(held) + 1)
    live = LiveSession(request.engine, context, request.blobs, snapshot)
    live.session = SessionRef(noted.session.session_id)
    live.fingerprint, live.messages = noted.session, noted.messages
    turns = with_unanswered(case.input.all_turns(), past.unanswered)
    return Opened(
        request,
        _continued(noted.record, held),
        live,
        turns,
        dict(noted.variables),
        tuple(held),
        noted.held_seconds,
        noted.elapsed_ms,
        noted.record.judging,
    )


def _continued(record: Record, held: list[TurnRecord]) -> Record:
    """Its record so far without turns, and with a note of it."""
    many = "turn 1 was" if len(held) == 1 else f"turns 1–{len(held)} were"
    note = f"resumed after turn {len(held)}: {many} held by an earlier start of the run"
    return record.model_copy(update={"turns": [], "judging": None, "notes": [*record.notes, note]})


def _put_back(request: TrialRequest, noted: Checkpoint) -> str | None:
    """Why the trial cannot be gone on with; None: its home is as it was then, all else, too."""
    if noted.asked_sha256 != what_was_asked(request):
        return "the case, its variables or the engine were changed since"
    turns = request.job.loaded.case.input.all_turns()
    if not 0 < len(noted.record.turns) < len(turns):
        return "what is noted down of it does not fit the case"
    home = request.scratch / "home"
    if not home.is_dir() or home.is_symlink():
        return "its scratch directory is gone"
    if workspace_signature(request.scratch / "workspace") != noted.workspace_sha256:
        return "its workspace was changed after the last whole turn"
    try:
        return rewind_sessions(home.resolve(), noted.session_files, noted.session)
    except OSError as refused:
        return f"the agent's session could not be put back: {refused.strerror or refused}"
