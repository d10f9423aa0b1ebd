"""What a trial needs to be gone on with in the middle of its conversation."""

from __future__ import annotations

from pydantic import Field

from skillup.schema.base import Model
from skillup.schema.record import Record, SessionFingerprint

CHECKPOINT_VERSION = "skillup.checkpoint/1"


class Checkpoint(Model):
    """A trial after a turn that others follow; its workspace and home are in its scratch."""

    schema_version: str = Field(CHECKPOINT_VERSION, description="The version of this format.")
    record: Record = Field(description="All there is of it so far, the turns too.")
    variables: dict[str, str] = Field(description="What the next message may use.")
    messages: int = Field(description="Messages sent so far, follow-ups too.")
    session: SessionFingerprint = Field(description="What the session held after the turn.")
    chosen_session_id: str = Field(description="The id that the trial chose for its session.")
    skills: dict[str, str] = Field(description="Name → directory, relative to the workspace.")
    home_copy: str = Field(description="Which of the scratch's copies of the home it is.")
    home_sha256: str = Field(description="Over that copy's paths, sizes, times and modes.")
    workspace_sha256: str = Field(description="The same over the workspace, with its `.git`.")
    asked_sha256: str = Field(description="Over the case and the engine, as they were asked for.")
    elapsed_ms: int = Field(description="Of the trial so far, preparation included.")
    held_seconds: float = Field(description="Of the conversation's own time limit.")
    uncounted: int = Field(0, description="Attempts so far that no `retry_policy` counts.")
