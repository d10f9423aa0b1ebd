"""Rows of Claude Code's session files and recordings as entries."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.session_files import claude_row, read, text, told, write_rows


def _told(tmp_path: Path, *rows: Any) -> list[tuple[str, str]]:
    first = claude_row("user", "hello", "0", None)
    entries, _ = read(write_rows(tmp_path / "s.jsonl", [first, *rows]))
    return [told(entry) for entry in entries][1:]


def _stream(kind: str, **more: Any) -> dict[str, Any]:
    return {"type": kind, "session_id": "s1", **more}


def test_a_session_tells_what_it_is(tmp_path: Path) -> None:
    path = write_rows(
        tmp_path / "s.jsonl",
        [
            {"type": "queue-operation", "operation": "enqueue", "sessionId": "s1"},
            claude_row("user", "Count  the\nfiles", "1", None),
            claude_row("assistant", text("Three."), "2", "1"),
            {"type": "ai-title", "sessionId": "s1", "aiTitle": "Counting"},
        ],
    )
    _, summary = read(path)
    assert summary.session_id == "s1"
    assert summary.cwd == "/project"
    assert summary.version == "2.1.0"
    assert summary.model == "claude-x"
    assert summary.title == "Counting"
    assert summary.first_words == "Count the files"
    assert summary.started == summary.ended == "2026-01-01T00:00:00.000Z"
    assert (summary.turns, summary.unknown_lines, summary.truncated) == (1, 0, False)


def test_blocks_of_a_message_are_entries_in_their_order(tmp_path: Path) -> None:
    blocks = [
        {"type": "thinking", "thinking": "hm"},
        {"type": "text", "text": "I look."},
        {"type": "tool_use", "id": "c1", "name": "mcp__files__find", "input": {"q": "x"}},
    ]
    result = [{"type": "tool_result", "tool_use_id": "c1", "content": "none", "is_error": True}]
    rows = [claude_row("assistant", blocks, "1", "0"), claude_row("user", result, "2", "1")]
    path = write_rows(tmp_path / "s.jsonl", [claude_row("user", "hello", "0", None), *rows])
    entries, summary = read(path)
    assert [(entry.line, *told(entry)) for entry in entries] == [
        (1, "user", "hello"),
        (2, "reasoning", "hm"),
        (2, "assistant", "I look."),
        (2, "tool_call", "files::find"),
        (3, "tool_result", "none"),
    ]
    call, result_ = entries[3].tool_call, entries[4].tool_result
    assert call is not None
    assert (call.id, call.kind, call.arguments) == ("c1", "mcp", {"q": "x"})
    assert result_ is not None
    assert (result_.call_id, result_.status) == ("c1", "error")
    assert {entry.turn for entry in entries} == {1}
    assert summary.turns == 1


@pytest.mark.parametrize(
    ("content", "more", "expected"),
    [
        ("go on", {}, ("user", "go on")),
        ([{"type": "image"}, {"type": "text", "text": "this"}], {}, ("user", "[image]\nthis")),
        ([{"type": "image"}], {}, ("user", "[image]")),
        ("context", {"isMeta": True}, ("notice", "context")),
        ("the story so far", {"isCompactSummary": True}, ("notice", "the story so far")),
        ("[Request interrupted by user]", {}, ("notice", "[Request interrupted by user]")),
        ("<local-command-stdout>ok</local-command-stdout>", {}, ("notice", None)),
        ("<system-reminder>be good</system-reminder>", {}, ("notice", None)),
        ("<command-name>/review</command-name>", {}, ("user", None)),
    ],
)
def test_who_wrote_a_row_of_the_user(
    tmp_path: Path, content: Any, more: dict[str, Any], expected: tuple[str, str | None]
) -> None:
    [(role, words)] = _told(tmp_path, claude_row("user", content, "1", "0", **more))
    assert role == expected[0]
    assert words == (expected[1] or content)


def test_a_reminder_beside_the_users_words_is_told_apart(tmp_path: Path) -> None:
    content = text("<system-reminder>x</system-reminder>") + text("the question")
    row = claude_row("user", content, "1", "0")
    assert _told(tmp_path, row) == [
        ("notice", "<system-reminder>x</system-reminder>"),
        ("user", "the question"),
    ]


def test_what_the_user_typed_while_the_agent_worked_is_a_message(tmp_path: Path) -> None:
    queued = {"type": "queued_command", "prompt": "faster", "commandMode": "prompt"}
    report = {"type": "queued_command", "prompt": "ended", "commandMode": "task-notification"}
    listing = {"type": "skill_listing", "content": "a, b"}
    rows = [
        claude_row("attachment", None, str(number), "0", attachment=attachment)
        for number, attachment in enumerate((queued, report, listing), start=1)
    ]
    assert _told(tmp_path, *rows) == [("user", "faster"), ("notice", "ended")]


def test_what_the_cli_says_by_itself_is_a_notice(tmp_path: Path) -> None:
    synthetic = claude_row("assistant", text("You've hit your limit"), "1", "0")
    synthetic["message"]["model"] = "<synthetic>"
    system = {"type": "system", "sessionId": "s1"}
    rows = [
        synthetic,
        {**system, "subtype": "compact_boundary", "content": "x"},
        {**system, "subtype": "api_error", "error": {"error": {"error": {"message": "busy"}}}},
        {**system, "subtype": "api_retry", "attempt": 1, "max_retries": 10, "error_status": 529},
        {**system, "subtype": "informational", "content": "updated"},
        {**system, "subtype": "turn_duration", "durationMs": 5},
    ]
    assert _told(tmp_path, *rows) == [
        ("notice", "You've hit your limit"),
        ("notice", "the conversation was compacted"),
        ("notice", "API error: busy"),
        ("notice", "asked the model again (1 of 10): 529"),
        ("notice", "updated"),
    ]


@pytest.mark.parametrize(
    "row",
    [
        {"type": "system", "subtype": "brand_new", "sessionId": "s1"},
        {"type": "brand-new", "sessionId": "s1"},
        {"type": "user", "sessionId": "s1", "message": {"role": "user"}},
        {"type": "assistant", "sessionId": "s1", "message": {"content": 5}},
        claude_row("assistant", [{"type": "brand_new"}, 7], "1", "0"),
        [1],
        "words",
        None,
    ],
)
def test_what_we_do_not_understand_is_counted_once_and_kept(tmp_path: Path, row: Any) -> None:
    first = claude_row("user", "hello", "0", None)
    entries, summary = read(write_rows(tmp_path / "s.jsonl", [first, row]))
    assert summary.unknown_lines == 1
    kept = entries[1:]
    assert kept
    assert all(e.role == "notice" and e.text.startswith("unknown event: ") for e in kept)


def test_sub_agents_are_named_and_their_messages_are_no_turns(tmp_path: Path) -> None:
    rows = [
        claude_row("user", "hello", "0", None),
        claude_row("user", "look", "1", None, isSidechain=True, agentId="a1"),
        claude_row("assistant", text("seen"), "2", "1", isSidechain=True),
    ]
    entries, summary = read(write_rows(tmp_path / "s.jsonl", rows))
    assert [(e.role, e.agent, e.turn) for e in entries] == [
        ("user", None, 1),
        ("user", "a1", 1),
        ("assistant", "sidechain", 1),
    ]
    assert (summary.turns, summary.agent) == (1, None)


def test_the_file_of_a_sub_agent_is_its_own_session(tmp_path: Path) -> None:
    of_agent = {"isSidechain": True, "agentId": "a1"}
    rows = [
        claude_row("user", "look", "1", None, **of_agent),
        claude_row("assistant", text("seen"), "2", "1", **of_agent),
    ]
    entries, summary = read(write_rows(tmp_path / "s.jsonl", rows))
    assert [(e.role, e.agent, e.turn) for e in entries] == [
        ("user", None, 1),
        ("assistant", None, 1),
    ]
    assert summary.agent == "a1"


def test_a_recording_has_turns_though_it_lacks_the_prompts(tmp_path: Path) -> None:
    init = _stream("system", subtype="init", cwd="/w", model="m", claude_code_version="2.1.0")
    answer = _stream("assistant", message={"content": text("One."), "model": "m"})
    end = _stream("result", subtype="success", result="One.", is_error=False)
    path = write_rows(tmp_path / "r.jsonl", [init, answer, end, init, answer, end])
    entries, summary = read(path)
    assert [(e.turn, *told(e)) for e in entries] == [
        (1, "assistant", "One."),
        (2, "assistant", "One."),
    ]
    assert (summary.cwd, summary.model, summary.version) == ("/w", "m", "2.1.0")
    assert summary.turns == 2


def test_several_turns_of_one_process_are_told_apart_in_its_recording(tmp_path: Path) -> None:
    answer = _stream("assistant", message={"content": text("One."), "model": "m"})
    end = _stream("result", subtype="success", result="One.", is_error=False)
    init = _stream("system", subtype="init")
    entries, _ = read(write_rows(tmp_path / "r.jsonl", [init, answer, end, answer, end]))
    assert [entry.turn for entry in entries] == [1, 2]


def test_a_prompt_in_a_recording_belongs_to_the_turn_that_began(tmp_path: Path) -> None:
    rows = [
        _stream("system", subtype="init"),
        _stream("user", message={"role": "user", "content": text("Go")}, parent_tool_use_id=None),
        _stream("assistant", message={"content": text("sub")}, parent_tool_use_id="c1"),
    ]
    entries, summary = read(write_rows(tmp_path / "r.jsonl", rows))
    assert [(e.turn, e.role, e.agent) for e in entries] == [
        (1, "user", None),
        (1, "assistant", "c1"),
    ]
    assert summary.turns == 1


def test_the_end_of_a_recording_adds_only_what_was_not_said(tmp_path: Path) -> None:
    init = _stream("system", subtype="init")
    local = _stream("result", subtype="success", result="Commands: /help", is_error=False)
    failed = _stream("result", subtype="error_max_turns", is_error=True, errors=["too many"])
    limit = _stream("rate_limit_event", rate_limit_info={"status": "rejected"})
    entries, _ = read(write_rows(tmp_path / "r.jsonl", [init, local, init, limit, failed]))
    assert [told(entry) for entry in entries] == [
        ("assistant", "Commands: /help"),
        ("notice", "rate limit: rejected"),
        ("notice", "the turn ended with error_max_turns: too many"),
    ]
