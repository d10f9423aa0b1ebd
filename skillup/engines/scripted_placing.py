"""Session files of the scripted agent that no agent wrote: seeded with a history, or forked.

The format is documented in ``scripted_agent/sessions.py``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from skillup.engines.base import TrialContext
from skillup.engines.moved_paths import moved
from skillup.engines.scripted_agent import VERSION
from skillup.schema.record import HistoryItem

_TOOLS = {"shell": "shell", "write": "write_file", "read": "read_file", "skill": "skill"}
"""What the agent calls its own tool of a portable kind."""


def seeded_lines(history: Sequence[HistoryItem], trial: TrialContext) -> Iterator[str]:
    """The lines of a session that holds `history`."""
    header = {"type": "session", "session_id": trial.session_id, "agent_version": VERSION}
    yield _line({**header, "workspace": str(trial.workspace)})
    asked = False
    answer: str | None = None
    for item in history:
        if item.role == "user" and answer is not None:
            yield _seeded("answer", text=answer)
            answer = None
        if item.role == "user":
            asked = True
            yield _seeded("user", text=item.content)
        elif item.tool_result is not None:
            result = item.tool_result
            status = "error" if result.status == "error" else "success"
            yield _seeded("tool_result", id=result.call_id, status=status, output=result.content)
        else:
            if item.content:
                yield _seeded("message", text=item.content)
                # Without a question there is nothing that it could be the answer to.
                answer = item.content if asked else None
            for call in item.tool_calls:
                name = call.name or _TOOLS.get(call.kind, call.kind)
                yield _seeded("tool_call", id=call.id, name=name, input=call.arguments)
    if answer is not None:
        yield _seeded("answer", text=answer)


def forked_lines(
    file: Path, session_id: str, parent: TrialContext, child: TrialContext
) -> list[str]:
    """The lines of a copy of `file` for `child`, its workspace in place of `parent`'s.

    Raises OSError or ValueError where there is no session that could be copied.
    """
    lines: list[str] = []
    with file.open(encoding="utf-8") as stream:
        for line in stream:
            entry = moved(json.loads(line), str(parent.workspace), str(child.workspace))
            if not lines:
                if entry.get("agent_version") != VERSION:
                    raise ValueError("it was written by another version of the agent")
                entry |= {"session_id": child.session_id, "forked_from": session_id}
            lines.append(_line(entry))
    if not lines:
        raise ValueError("it is empty")
    return lines


def _seeded(kind: str, **fields: Any) -> str:
    return _line({"type": kind, "seeded": True, **fields})


def _line(entry: dict[str, Any]) -> str:
    return json.dumps(entry) + "\n"
