"""The head of a session file: enough to tell sessions apart, without reading them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from skillup.engines.session_entries import SessionFormat, SessionSummary
from skillup.engines.session_transcript import SessionTranscript, detect_format

HEAD_BYTES = 128 << 10
"""A rollout begins with about 40 kB of instructions before the first message."""


@dataclass(frozen=True, slots=True)
class SessionHead:
    """What the first bytes of a session file tell."""

    format: SessionFormat | None
    """None: it is no session, or its head does not say so."""
    summary: SessionSummary
    whole: bool
    """The file is no longer than its head: the count of turns is that of the session.

    Else it is that of the head, branches that were gone back from among them.
    """


def read_head(path: Path, size: int) -> SessionHead:
    """Of a file of `size` bytes. Raises OSError."""
    whole = size <= HEAD_BYTES
    format_ = detect_format(path, HEAD_BYTES)
    if format_ is None:
        return SessionHead(None, SessionSummary(), whole)
    transcript = SessionTranscript(path, format_, limit=None if whole else HEAD_BYTES)
    for _ in transcript:
        pass
    return SessionHead(format_, transcript.summary, whole)
