"""The scripted agent's session files, as seen from outside: where they are, what they hold.

The format is documented in ``scripted_agent/sessions.py``. The files only ever grow, so a session
still holds its earlier turns if the file begins as it was when the turn before had ended.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

from skillup.schema.record import SessionFingerprint


def agent_home(trial_home: Path) -> Path:
    """The agent's own directory within a trial's home."""
    return trial_home / ".scripted-agent"


def session_file(home: Path, session_id: str) -> Path:
    """Where the agent with this home keeps that session."""
    return home / "sessions" / f"{session_id}.jsonl"


def take_fingerprint(path: Path, session_id: str) -> SessionFingerprint | None:
    """The whole file as it is now; None if there is none."""
    try:
        content = path.read_bytes()
    except OSError:
        return None
    return SessionFingerprint(
        session_id=session_id,
        messages=sum(_is_message(line) for line in content.splitlines()),
        prefix_sha256=hashlib.sha256(content).hexdigest(),
        prefix_bytes=len(content),
    )


def still_holds(path: Path, previous: SessionFingerprint) -> bool:
    """Whether the file still begins with all that it held when `previous` was taken."""
    try:
        with path.open("rb") as file:
            prefix = file.read(previous.prefix_bytes)
    except OSError:
        return False
    same_length = len(prefix) == previous.prefix_bytes
    return same_length and hashlib.sha256(prefix).hexdigest() == previous.prefix_sha256


def _is_message(line: bytes) -> bool:
    try:
        return bool(json.loads(line)["type"] == "user")
    except (ValueError, KeyError, TypeError):
        return False
