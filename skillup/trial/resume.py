"""Going on with a conversation that another process began, from its checkpoint.

That is done only if all is as it was after the last turn of the checkpoint: else it would be
another conversation. Its session files are cut back to what they held then.
"""

from __future__ import annotations

import hashlib
import json

import anyio.to_thread

from skillup.schema.record import Checkpoint, TurnError
from skillup.trial.artifacts import remove_streams_from
from skillup.trial.history import past_of, with_unanswered
from skillup.trial.request import TrialRequest
from skillup.trial.session import LiveSession, look_at, put_back
from skillup.trial.setup import OpenTrial, context_of, extra_variables
from skillup.workspace.disk import refuse_full_disk


def request_digest(request: TrialRequest) -> str:
    """Of case and engine: a conversation is only gone on with if they are the same."""
    job = request.job
    facts = {
        "case": job.loaded.case.model_dump(mode="json", by_alias=True, exclude_unset=True),
        "profile": job.profile.model_dump(mode="json"),
        "version": request.engine_version,
        "variant": job.variant,
        "variables": dict(request.variables),
    }
    text = json.dumps(facts, sort_keys=True, default=str)
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()


async def resume_trial(request: TrialRequest, checkpoint: Checkpoint) -> OpenTrial | str:
    """The trial, ready for its next turn; or why it must begin anew. Raises FullDiskError."""
    try:
        if checkpoint.asked_sha256 != request_digest(request):
            return "the case, its variables or the engine were changed since"
        home, workspace = request.scratch / "home", request.scratch / "workspace"
        if not home.is_dir() or home.is_symlink():
            return "its scratch directory is gone"
        files, signature = checkpoint.session_files, checkpoint.workspace_sha256
        problem = await anyio.to_thread.run_sync(
            put_back, home.resolve(), workspace, files, signature, checkpoint.session
        )
        return problem if problem is not None else await _resume(request, checkpoint)
    except OSError as refused:
        refuse_full_disk(refused, request.scratch)
        return f"what it left could not be read: {refused.strerror or refused}"


async def _resume(request: TrialRequest, checkpoint: Checkpoint) -> OpenTrial | str:
    added = extra_variables(request)
    if isinstance(added, TurnError):
        return added.message
    case = request.job.loaded.case
    past = await anyio.to_thread.run_sync(past_of, case.input, {**case.vars, **request.variables})
    workspace, home = ((request.scratch / name).resolve() for name in ("workspace", "home"))
    skills = {name: workspace / path for name, path in checkpoint.skills.items()}
    context = context_of(
        request, workspace, home, added, skills, session_id=checkpoint.chosen_session_id
    )
    snapshot = await look_at(workspace, request.blobs)
    record, done = checkpoint.record, checkpoint.record.turns
    await anyio.to_thread.run_sync(remove_streams_from, request.raw_dir, len(done) + 1)
    session = LiveSession(
        request.engine,
        context,
        request.blobs,
        snapshot,
        checkpoint.session.session_id,
        checkpoint.session,
        checkpoint.messages,
    )
    many = "turn 1 was" if len(done) == 1 else f"turns 1–{len(done)} were"
    note = f"resumed after turn {len(done)}: {many} run by an earlier start of the run"
    update = {"turns": [], "judging": None, "notes": [*record.notes, note]}
    return OpenTrial(
        request,
        record.model_copy(update=update),
        session,
        with_unanswered(case.input.all_turns(), past.unanswered),
        dict(checkpoint.variables),
        tuple(done),
        checkpoint.elapsed_seconds,
        checkpoint.elapsed_ms,
        record.judging,
    )
