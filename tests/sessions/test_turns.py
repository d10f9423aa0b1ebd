"""Which messages are one turn, and which are none."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from skillup.sessions.readers import SessionTranscript
from skillup.sessions.turns import SessionTurns, turns_of
from tests.support.session_files import (
    claude_row,
    codex_meta,
    event,
    format_named,
    item,
    message,
    said,
    text,
    write_rows,
)

_COMMAND = "<command-message>x</command-message><command-name>/{}</command-name>"


def claude(tmp_path: Path, *said: tuple[str, Any]) -> SessionTurns:
    """The turns of a session in which this was said, in a row."""
    rows = []
    for number, (kind, content) in enumerate(said):
        parent = str(number - 1) if number else None
        rows.append(claude_row(kind, content, str(number), parent))
    path = write_rows(tmp_path / "session.jsonl", rows)
    return turns_of(SessionTranscript(path, format_named("claude_session")))


def told(found: SessionTurns) -> list[tuple[str, str]]:
    return [(turn.content, turn.response) for turn in found.turns]


def test_each_answered_message_is_a_turn(tmp_path: Path) -> None:
    found = claude(
        tmp_path,
        ("user", "one"),
        ("assistant", text("first")),
        ("assistant", text("second")),
        ("user", "two"),
        ("assistant", text("third")),
    )
    assert told(found) == [("one", "second"), ("two", "third")]
    assert [turn.numbers for turn in found.turns] == [[1], [2]]
    assert found.unanswered == []


def test_messages_that_were_answered_together_are_one_turn(tmp_path: Path) -> None:
    found = claude(tmp_path, ("user", "one"), ("user", "two"), ("assistant", text("yes")))
    assert told(found) == [("one\n\ntwo", "yes")]
    assert found.turns[0].numbers == [1, 2]


def test_a_message_that_was_sent_again_counts_once(tmp_path: Path) -> None:
    found = claude(tmp_path, ("user", "one"), ("user", "one"), ("assistant", text("yes")))
    assert told(found) == [("one", "yes")]


def test_a_last_message_without_an_answer_is_no_turn(tmp_path: Path) -> None:
    found = claude(tmp_path, ("user", "one"), ("assistant", text("yes")), ("user", "two"))
    assert told(found) == [("one", "yes")]
    assert [turn.content for turn in found.unanswered] == ["two"]


def test_a_command_that_the_cli_ran_by_itself_is_no_turn(tmp_path: Path) -> None:
    found = claude(
        tmp_path,
        ("user", _COMMAND.format("clear")),
        ("user", "<local-command-stdout>cleared</local-command-stdout>"),
        ("user", "one"),
        ("assistant", text("yes")),
    )
    assert told(found) == [("one", "yes")]
    assert [turn.content for turn in found.unanswered] == ["/clear"]


def test_a_command_that_the_agent_answered_is_a_turn(tmp_path: Path) -> None:
    command = _COMMAND.format("review") + "<command-args>the diff\n</command-args>"
    found = claude(tmp_path, ("user", command), ("assistant", text("fine")))
    assert told(found) == [("/review the diff", "fine")]
    assert found.turns[0].command


def test_a_tool_call_is_an_answer(tmp_path: Path) -> None:
    call = [{"type": "tool_use", "id": "c1", "name": "Bash", "input": {"command": "ls"}}]
    found = claude(tmp_path, ("user", "one"), ("assistant", call), ("user", "two"))
    assert told(found) == [("one", "")]
    assert found.turns[0].items[0].tool_call is not None


def test_an_interruption_is_noted(tmp_path: Path) -> None:
    found = claude(
        tmp_path,
        ("user", "one"),
        ("assistant", text("I begin")),
        ("user", text("[Request interrupted by user]")),
        ("user", "two"),
        ("assistant", text("yes")),
    )
    assert [turn.interrupted for turn in found.turns] == [True, False]


def test_branches_that_were_left_are_no_part(tmp_path: Path) -> None:
    rows = [
        claude_row("user", "one", "1", None),
        claude_row("assistant", text("first"), "2", "1"),
        claude_row("user", "again", "3", None),
        claude_row("assistant", text("second"), "4", "3"),
    ]
    path = write_rows(tmp_path / "session.jsonl", rows)
    assert told(turns_of(SessionTranscript(path, format_named("claude_session")))) == [
        ("again", "second")
    ]


def test_a_recording_without_prompts_has_turns_without_messages(tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [
        {"type": "thread.started", "thread_id": "t"},
        {"type": "turn.started"},
        {"type": "item.completed", "item": {"id": "1", "type": "agent_message", "text": "one"}},
        {"type": "turn.completed"},
        {"type": "turn.started"},
        {"type": "item.completed", "item": {"id": "2", "type": "agent_message", "text": "two"}},
        {"type": "turn.completed"},
    ]
    path = write_rows(tmp_path / "recording.jsonl", rows)
    found = turns_of(SessionTranscript(path, format_named("codex_exec")))
    assert told(found) == [("", "one"), ("", "two")]


def test_a_rollout_of_codex(tmp_path: Path) -> None:
    rows = [
        codex_meta(),
        message("user", "<environment_context>…</environment_context>"),
        *said("user", "one"),
        item("reasoning", summary=[{"type": "summary_text", "text": "hm"}]),
        *said("assistant", "yes"),
        event("token_count", info=None),
    ]
    path = write_rows(tmp_path / "rollout.jsonl", rows)
    found = turns_of(SessionTranscript(path, format_named("codex_rollout")))
    assert told(found) == [("one", "yes")]
    assert [entry.type for entry in found.turns[0].items] == ["reasoning", "message"]
