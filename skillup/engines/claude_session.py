"""Claude Code's session files: `projects/<slug of the working directory>/<session id>.jsonl`."""

from __future__ import annotations

import glob
from pathlib import Path
from typing import Any

from skillup.engines.session_files import take_fingerprint
from skillup.schema.record import SessionFingerprint


def session_file(engine_home: Path, session_id: str) -> Path | None:
    """The session's file. The slug is not computed: long ones are cut and get a hash added."""
    found = (engine_home / "projects").glob(f"*/{glob.escape(session_id)}.jsonl")
    return min(found, default=None)


def fingerprint(engine_home: Path, session_id: str) -> SessionFingerprint | None:
    """What the session holds now; None if it has no file."""
    return take_fingerprint(session_file(engine_home, session_id), session_id, is_user_message)


def is_user_message(entry: dict[str, Any]) -> bool:
    """Whether a line is a message that somebody sent, not a tool result or the CLI's own text."""
    if entry.get("type") != "user" or entry.get("isMeta") or entry.get("isSidechain"):
        return False
    if entry.get("isCompactSummary") or entry.get("isVisibleInTranscriptOnly"):
        return False
    message = entry.get("message")
    content = message.get("content") if isinstance(message, dict) else None
    if isinstance(content, list):
        texts = [block.get("text") for block in content if isinstance(block, dict)]
        content = next((text for text in texts if isinstance(text, str) and text), None)
    return isinstance(content, str) and not content.startswith("[Request interrupted")
