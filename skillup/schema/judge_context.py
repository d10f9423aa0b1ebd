"""What an agent that judges is shown of the conversation; skill-up's form."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from skillup.schema.base import Model, NonEmptyText, PositiveInt

Showing = Literal["include", "truncate", "file_ref", "omit"]
"""include: as a file, and in the question if it is short enough; truncate: as a file, and its
beginning and end in the question; file_ref: as a file; omit: not at all."""


class ContextLimits(Model):
    """How much is shown; what is left out is said."""

    max_bytes: PositiveInt = Field(65_536, description="Of each part that is in the question.")
    max_file_bytes: PositiveInt = Field(
        4_194_304, description="Of each file; transcript.md and changes.diff are cut to it."
    )
    transcript_max_turns: PositiveInt | None = Field(
        None, description="Only so many turns, the last ones."
    )
    workspace_diff_max_lines: PositiveInt | None = Field(
        None, description="Only so many lines of the diff, the first ones."
    )


class Attachment(Model):
    """A file of the suite that is put among what the judge is shown."""

    path: NonEmptyText = Field(description="Relative to the suite root.")
    label: NonEmptyText | None = Field(None, description="What it is called; default: its name.")


class JudgeContext(Model):
    """What an agent_judge is shown, beside its copy of the workspace."""

    profile: Literal["minimal", "standard"] = Field(
        "standard", description="minimal: neither transcript nor diff, and the answer shortened."
    )
    final_message: Showing | None = Field(None, description="The agent's last answer.")
    transcript: Showing | None = Field(None, description="All that was said and done.")
    workspace_diff: Showing | None = Field(None, description="What changed in the workspace.")
    generated_files: Literal["include", "index", "omit"] | None = Field(
        None,
        description="index: a list of the files; include: new ones in the question, too.",
    )
    limits: ContextLimits = Field(default_factory=ContextLimits, description="How much.")
    attachments: list[Attachment] = Field(default_factory=list, description="More files.")

    def shows(self, part: Literal["final_message", "transcript", "workspace_diff"]) -> Showing:
        """How a part is shown: as said, else as the profile has it."""
        own: Showing | None = getattr(self, part)
        if own is not None:
            return own
        if part == "final_message":
            return "truncate" if self.profile == "minimal" else "include"
        return "omit" if self.profile == "minimal" else "file_ref"
