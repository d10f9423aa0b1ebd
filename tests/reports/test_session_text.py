"""A session as people read it."""

from __future__ import annotations

from pathlib import Path

from skillup.engines.session_entries import SessionEntry, SessionSummary
from skillup.reports.terminal.listing import foot_lines, head_lines, transcript_lines
from skillup.schema.record import ToolCall, ToolResult, TranscriptItem

CALL = ToolCall(id="c", name="Bash", kind="shell", arguments={"command": "ls", "n": 1})


def _entry(role: str, text: str = "", agent: str | None = None, **more: object) -> SessionEntry:
    kind = "message" if role in ("user", "assistant") else role
    item = TranscriptItem.model_validate({"type": kind, "text": text, "agent": agent, **more})
    return SessionEntry(1, "2026-01-01T00:00:00Z", 1, role, item)  # type: ignore[arg-type]


def _result(content: str, status: str = "success") -> SessionEntry:
    result = ToolResult(call_id="c", status=status, content=content)
    return _entry("tool_result", tool_result=result)


def _shown(*entries: SessionEntry, full: bool = False) -> list[str]:
    return list(transcript_lines(entries, full=full))[2:]


def test_a_turn_has_its_number_and_time_and_who_said_and_did_what() -> None:
    entries = (
        _entry("assistant", "I look.\nNow."),
        _entry("tool_call", tool_call=CALL),
        _result("a.txt"),
        _result("no", "error"),
        _entry("reasoning", "hm\nhm"),
        _entry("reasoning"),
        _entry("notice", "compacted"),
        _entry("assistant", "seen", agent="a1"),
    )
    assert list(transcript_lines(entries)) == [
        "",
        "── turn 1 ── 2026-01-01T00:00:00Z",
        "assistant: I look.",
        "    Now.",
        "  → Bash command=ls n=1",
        "  ← a.txt",
        "  ← error: no",
        "  ~ hm hm",
        "  · compacted",
        "assistant (a1): seen",
    ]


def test_long_results_are_shortened_unless_in_full_and_messages_never() -> None:
    content = "\n".join(f"line {number}" for number in range(20))
    short = _shown(_result(content))
    assert (short[0], short[-1], len(short)) == ("  ← line 0", "    … 14 more lines …", 7)
    assert len(_shown(_result(content), full=True)) == 20
    assert len(_shown(_result("x" * 5000))[0]) < 700
    assert len(_shown(_entry("assistant", "\n".join(["word " * 100] * 50)))) == 50


def test_nothing_moves_the_cursor_of_the_terminal() -> None:
    evil = "a\x1b[2Jb\x07\x9bc\rd\u202e"
    call = ToolCall(id="c", name=evil, kind="other", arguments={evil: evil})
    entries = [
        _entry("user", evil, agent=evil),
        _entry("tool_call", tool_call=call),
        _result(evil),
        _entry("notice", evil),
    ]
    summary = SessionSummary(session_id=evil, cwd=evil, title=evil, model=evil)
    for full in (True, False):
        shown = [
            *head_lines("codex", Path(evil), summary),
            *transcript_lines(entries, full=full),
            *foot_lines(summary, sub_agents=[Path(evil)]),
        ]
        assert not set("\n".join(shown)) & set("\x1b\x07\x9b\r\u202e")


def test_the_foot_says_what_is_missing() -> None:
    summary = SessionSummary(turns=2, unknown_lines=1, truncated=True)
    foot = list(foot_lines(summary, sub_agents=[Path("/x/agent-1.jsonl")]))
    assert foot[1:3] == ["2 turns", "1 line not understood"]
    assert "cut off" in foot[3]
    assert foot[4].endswith("/x/agent-1.jsonl")
