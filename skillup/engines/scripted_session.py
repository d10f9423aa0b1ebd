"""The scripted agent's session files, as seen from outside.

The format is documented in ``scripted_agent/sessions.py``; the files only ever grow.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any


def agent_home(trial_home: Path) -> Path:
    """The agent's own directory within a trial's home."""
    return trial_home / "scripted-agent"


def session_file(home: Path, session_id: str) -> Path:
    """Where the agent with this home keeps that session."""
    return home / "sessions" / f"{session_id}.jsonl"


def is_user_message(entry: dict[str, Any]) -> bool:
    """Whether this line of a session file begins a turn."""
    return entry.get("type") == "user"
