"""Records to judge, built in a line or two: turns, tool calls, workspaces, references.

recorded = make_record(
    make_turn("Deleted 3 files.", calls=[call("Bash", "shell", command="rm -rf data")]),
    files={"notes.txt": "hello"},
)
evaluate(check, recorded.context(turn=1))
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from skillup.checks.context import Ask, CheckContext
from skillup.schema.checks import ToolKind
from skillup.schema.record import (
    EngineInfo,
    FileState,
    ProcessInfo,
    Record,
    ToolCall,
    ToolResult,
    TranscriptItem,
    TurnError,
    TurnRecord,
    TurnStatus,
    Usage,
)

Content = str | bytes | FileState
"""A file's content; or its state, for links and for files whose content was not kept."""

# Addressed by content, so tests cannot get in each other's way.
_CONTENTS: dict[str, bytes] = {}


def read_file(state: FileState) -> bytes | None:
    """The content of a file made by :func:`file_states`."""
    return _CONTENTS.get(state.sha256 or "") if state.kept else None


def file_states(files: Mapping[str, Content]) -> dict[str, FileState]:
    return {path: _state(content) for path, content in files.items()}


def _state(content: Content) -> FileState:
    if isinstance(content, FileState):
        return content
    data = content.encode() if isinstance(content, str) else content
    sha256 = hashlib.sha256(data).hexdigest()
    _CONTENTS[sha256] = data
    return FileState(sha256=sha256, size=len(data))


def call(name: str, kind: ToolKind = "other", /, **arguments: Any) -> ToolCall:
    """A tool call; its id is given by :func:`make_turn`."""
    return ToolCall(id="", name=name, kind=kind, arguments=arguments)


def make_turn(
    response: str = "Done.",
    *,
    content: str = "Go on.",
    status: TurnStatus = "completed",
    calls: Sequence[ToolCall] = (),
    results: Sequence[str] = (),
    output_tokens: int | None = None,
    cost_usd: float | None = None,
    duration_ms: int = 1000,
    exit_code: int | None = 0,
    files: Mapping[str, Content] | None = None,
    **more: Any,
) -> TurnRecord:
    """A turn; `results` are the contents of the calls' results, `more` are fields as they are.

    Calls get the ids ``call-1``, ``call-2``, …; the turn's number comes from :func:`make_record`.
    """
    items = []
    for index, tool_call in enumerate(calls):
        numbered = tool_call.model_copy(update={"id": tool_call.id or f"call-{index + 1}"})
        items.append(TranscriptItem(type="tool_call", tool_call=numbered))
        if index < len(results):
            result = ToolResult(call_id=numbered.id, status="success", content=results[index])
            items.append(TranscriptItem(type="tool_result", tool_result=result))
    fields: dict[str, Any] = {
        "turn_number": 1,
        "status": status,
        "content": content,
        "response": response,
        "transcript": items,
        "usage": None if output_tokens is None else Usage(output_tokens=output_tokens),
        "cost_usd": cost_usd,
        "duration_ms": duration_ms,
        "process": ProcessInfo(exit_code=exit_code),
        "files": None if files is None else file_states(files),
        "error": TurnError(kind="crash", message="it crashed") if status == "error" else None,
    }
    return TurnRecord(**{**fields, **more})


@dataclass(frozen=True, slots=True)
class Recorded:
    """A record, and how to read the files it speaks of."""

    record: Record
    read_file: Callable[[FileState], bytes | None] = read_file

    def context(self, turn: int | None = None, ask: Ask | None = None) -> CheckContext:
        """The context for a check of `turn`, or of the conversation."""
        of = None if turn is None else self.record.turns[turn - 1]
        return CheckContext(self.record, of, self.read_file, ask)


def make_record(
    *turns: TurnRecord | str,
    files: Mapping[str, Content] | None = None,
    references: Mapping[str, Content] | None = None,
    **more: Any,
) -> Recorded:
    """A record of `turns` (a bare string is an answer), numbered in order.

    `files` is the workspace after every turn that has none of its own.
    """
    made = [make_turn(turn) if isinstance(turn, str) else turn for turn in turns]
    snapshot = file_states(files or {})
    numbered = [
        turn.model_copy(
            update={
                "turn_number": number,
                "files": snapshot if turn.files is None and files is not None else turn.files,
            }
        )
        for number, turn in enumerate(made, start=1)
    ]
    fields: dict[str, Any] = {
        "run_id": "run",
        "suite": "suite",
        "case_id": "case",
        "case": {"id": "case"},
        "engine": EngineInfo(profile="scripted", adapter="scripted"),
        "started_at": "2026-01-01T00:00:00.000Z",
        "duration_ms": sum(turn.duration_ms for turn in numbered),
        "references": file_states(references or {}),
        "turns": numbered,
    }
    return Recorded(Record(**{**fields, **more}))
