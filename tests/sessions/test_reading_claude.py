"""Claude Code's session files and recordings as entries, and which rows are the conversation."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.session_files import claude_row, read, text, told, write_rows

HELLO = claude_row("user", "hello", "0", None)


def entries_after_hello(tmp_path: Path, *rows: Any) -> list[tuple[str, str]]:
    entries, _ = read(write_rows(tmp_path / "s.jsonl", [HELLO, *rows]))
    return [told(entry) for entry in entries][1:]


def test_a_session_and_its_blocks_in_their_order(tmp_path: Path) -> None:
    blocks = [
        {"type": "thinking", "thinking": "hm"},
        {"type": "text", "text": "I look."},
        {"type": "tool_use", "id": "c1", "name": "mcp__files__find", "input": {"q": "x"}},
    ]
    result = [{"type": "tool_result", "tool_use_id": "c1", "content": "none", "is_error": True}]
    rows = [
        claude_row("user", "Count  the\nfiles", "0", None),
        claude_row("assistant", blocks, "1", "0"),
        claude_row("user", result, "2", "1"),
        {"type": "ai-title", "sessionId": "s1", "aiTitle": "Counting"},
        {"type": "queue-operation", "operation": "enqueue", "sessionId": "s1"},
    ]
    entries, summary = read(write_rows(tmp_path / "s.jsonl", rows))
    assert [(entry.line, entry.turn, *told(entry)) for entry in entries] == [
        (1, 1, "user", "Count  the\nfiles"),
        (2, 1, "reasoning", "hm"),
        (2, 1, "assistant", "I look."),
        (2, 1, "tool_call", "files::find"),
        (3, 1, "tool_result", "none"),
    ]
    call, given = entries[3].item.tool_call, entries[4].item.tool_result
    assert call
    assert given
    assert (call.id, call.kind, call.arguments) == ("c1", "mcp", {"q": "x"})
    assert (given.call_id, given.status) == ("c1", "error")
    assert (summary.session_id, summary.cwd, summary.version) == ("s1", "/project", "2.1.0")
    assert (summary.model, summary.title) == ("claude-x", "Counting")
    assert summary.first_words == "Count the files"
    assert summary.started == summary.ended == "2026-01-01T00:00:00.000Z"
    assert (summary.turns, summary.unknown_lines, summary.truncated) == (1, 0, False)


QUEUED = {"type": "queued_command", "prompt": "faster", "commandMode": "prompt"}
SYNTHETIC = claude_row("assistant", text("You've hit your limit"), "1", "0")
SYNTHETIC["message"]["model"] = "<synthetic>"
SYSTEM = {"type": "system", "sessionId": "s1"}


def of_user(content: Any, **more: Any) -> dict[str, Any]:
    return claude_row("user", content, "1", "0", **more)


def attached(**attachment: str) -> dict[str, Any]:
    return claude_row("attachment", None, "1", "0", attachment=attachment)


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        (of_user("go on"), [("user", "go on")]),
        (of_user([{"type": "image"}, *text("this")]), [("user", "[image]\nthis")]),
        (of_user("context", isMeta=True), [("notice", "context")]),
        (of_user("so far", isCompactSummary=True), [("notice", "so far")]),
        (of_user("[Request interrupted by user]"), [("notice", "[Request interrupted by user]")]),
        (of_user("<local-command-stdout>ok"), [("notice", "<local-command-stdout>ok")]),
        (of_user("<command-name>/review"), [("user", "<command-name>/review")]),
        (
            of_user(text("<system-reminder>x") + text("the question")),
            [("notice", "<system-reminder>x"), ("user", "the question")],
        ),
        (attached(**QUEUED), [("user", "faster")]),
        (attached(**{**QUEUED, "commandMode": "task-notification"}), [("notice", "faster")]),
        (attached(type="skill_listing"), []),
        (SYNTHETIC, [("notice", "You've hit your limit")]),
        ({**SYSTEM, "subtype": "compact_boundary"}, [("notice", "the conversation was compacted")]),
        (
            {**SYSTEM, "subtype": "api_error", "error": {"error": {"error": {"message": "busy"}}}},
            [("notice", "API error: busy")],
        ),
        (
            {**SYSTEM, "subtype": "api_retry", "attempt": 1, "max_retries": 9, "error_status": 529},
            [("notice", "asked the model again (1 of 9): 529")],
        ),
        ({**SYSTEM, "subtype": "turn_duration", "durationMs": 5}, []),
    ],
)
def test_who_wrote_a_row(tmp_path: Path, row: Any, expected: list[tuple[str, str]]) -> None:
    assert entries_after_hello(tmp_path, row) == expected


@pytest.mark.parametrize(
    "row",
    [
        {"type": "user", "sessionId": "s1", "message": {"role": "user"}},
        {"type": "assistant", "sessionId": "s1", "message": {"content": 5}},
        claude_row("assistant", [{"type": "brand_new"}, 7], "1", "0"),
        [1],
        "words",
        None,
    ],
)
def test_what_is_not_understood_is_counted_once_and_kept(tmp_path: Path, row: Any) -> None:
    entries, summary = read(write_rows(tmp_path / "s.jsonl", [HELLO, row]))
    assert summary.unknown_lines == 1
    kept = entries[1:]
    assert kept
    assert all(
        e.role == "notice" and (e.item.text or "").startswith("unknown event: ") for e in kept
    )


def message(uuid: str, parent: str | None, kind: str = "user", **more: Any) -> dict[str, Any]:
    content: Any = text(uuid) if kind == "assistant" else uuid
    return claude_row(kind, content, uuid, parent, **more)


def call(uuid: str, parent: str) -> dict[str, Any]:
    block = {"type": "tool_use", "id": f"call_{uuid}", "name": "Bash", "input": {}}
    row = claude_row("assistant", [block], uuid, parent)
    row["message"]["id"] = "m1"
    return row


def result(uuid: str, parent: str) -> dict[str, Any]:
    block = {"type": "tool_result", "tool_use_id": f"call_{parent}", "content": "ok"}
    return claude_row("user", [block], uuid, parent)


ASKED = [message("1", None), message("2", "1", "assistant")]
PARALLEL = [message("1", None), call("2", "1"), call("3", "2")]
NO_PARENT = message("1", None)
del NO_PARENT["parentUuid"]
BRANCHES: dict[str, tuple[list[dict[str, Any]], list[int]]] = {
    "straight": (ASKED, []),
    "gone back": (
        [*ASKED, message("3", "2"), message("4", "3", "assistant"), message("6", "2")],
        [3, 4],
    ),
    "to the first": ([*ASKED, message("3", None), message("4", "3", "assistant")], [1, 2]),
    "asked again": ([*ASKED, message("3", "1", "assistant")], [2]),
    "compacted": (
        [
            *ASKED,
            {**SYSTEM, "subtype": "compact_boundary", "uuid": "3", "parentUuid": None}
            | {"logicalParentUuid": "2"},
            message("4", "3", isCompactSummary=True),
            message("5", "4"),
        ],
        [],
    ),
    # Each result is a child of its call, so only one of them leads to the next message.
    "results first, last": (
        [*PARALLEL, result("5", "3"), result("4", "2"), message("6", "4", "assistant")],
        [],
    ),
    "unknown parents": ([NO_PARENT, message("2", "not here", "assistant"), message("3", "2")], []),
    "own parent": ([message("x", "x"), message("x", "x", "assistant")], []),
    "sub-agents": (
        [
            message("1", None),
            message("s1", None, isSidechain=True),
            message("s2", "s1", "assistant", isSidechain=True),
            message("2", "1", "assistant"),
        ],
        [],
    ),
}


@pytest.mark.parametrize("name", BRANCHES)
def test_the_branch_of_the_last_message_is_the_conversation(tmp_path: Path, name: str) -> None:
    rows, left = BRANCHES[name]
    entries, _ = read(write_rows(tmp_path / "s.jsonl", rows))
    lines = {entry.line for entry in entries}
    assert [n for n in range(1, len(rows) + 1) if n not in lines] == left
