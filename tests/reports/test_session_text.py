"""A session as people read it."""

from __future__ import annotations

import io
from pathlib import Path

from rich.console import Console

from skillup.engines.session_files import SessionEntry, SessionSummary
from skillup.reports.terminal.listing import foot_lines, head_lines, print_entries
from skillup.schema.record import ToolCall, ToolResult, TranscriptItem

CALL = ToolCall(id="c", name="Bash", kind="shell", arguments={"command": "ls", "n": 1})


def _entry(role: str, text: str = "", agent: str | None = None, **more: object) -> SessionEntry:
    kind = "message" if role in ("user", "assistant") else role
    item = TranscriptItem.model_validate({"type": kind, "text": text, "agent": agent, **more})
    return SessionEntry(1, "2026-01-01T00:00:00Z", 1, role, item)  # type: ignore[arg-type]


def _result(content: str, status: str = "success") -> SessionEntry:
    result = ToolResult(call_id="c", status=status, content=content)
    return _entry("tool_result", tool_result=result)


def _shown(*entries: SessionEntry, full: bool = False) -> str:
    stream = io.StringIO()
    print_entries(entries, Console(file=stream, width=200), full=full)
    return stream.getvalue()


def test_a_session_is_printed_as_conversations_are() -> None:
    entries = (
        _entry("user", "Look."),
        _entry("tool_call", tool_call=CALL),
        _result("no", "error"),
        _entry("reasoning"),
        _entry("assistant", "seen", agent="a1"),
    )
    assert _shown(*entries) == (
        "turn 1  user\n    Look.\nturn 1  agent calls Bash\n    command: ls\n    n: 1\n"
        "turn 1  Bash failed\n    no\nturn 1  sub-agent a1\n    seen\n"
    )
    content = "\n".join(f"line {number}" for number in range(30))
    assert _shown(_result(content)).endswith("    line 19\n    … 10 lines more\n")
    assert "line 29" in _shown(_result(content), full=True)


def test_nothing_moves_the_cursor_of_the_terminal() -> None:
    evil = "a\x1b[2Jb\x07\x9bc\rd\u202e"
    call = ToolCall(id="c", name=evil, kind="other", arguments={evil: evil})
    entries = [_entry("user", evil, agent=evil), _entry("tool_call", tool_call=call), _result(evil)]
    summary = SessionSummary(session_id=evil, cwd=evil, title=evil, model=evil)
    shown = [
        *head_lines("codex", Path(evil), summary),
        _shown(*entries, full=True),
        *foot_lines(summary, sub_agents=[Path(evil)]),
    ]
    assert not set("\n".join(shown)) & set("\x1b\x07\x9b\r\u202e")


def test_the_foot_says_what_is_missing() -> None:
    summary = SessionSummary(turns=2, unknown_lines=1, truncated=True)
    foot = list(foot_lines(summary, sub_agents=[Path("/x/agent-1.jsonl")]))
    assert foot[1:3] == ["2 turns", "1 line not understood"]
    assert "cut off" in foot[3]
    assert foot[4].endswith("/x/agent-1.jsonl")
