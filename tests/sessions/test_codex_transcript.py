"""Rows of Codex's rollouts, and recordings of `codex exec --json`, as entries."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from skillup.schema.record import ToolCall, ToolResult
from tests.support.session_files import (
    TIME,
    codex_meta,
    codex_row,
    done,
    event,
    item,
    message,
    read,
    said,
    told,
    write_rows,
)

PATCH = "*** Begin Patch\n*** Add File: a.txt\n+x\n*** Update File: b.txt\n*** End Patch\n"


def _told(tmp_path: Path, *rows: Any) -> list[tuple[str, str]]:
    entries, _ = read(write_rows(tmp_path / "rollout.jsonl", [codex_meta(), *rows]))
    return [told(entry) for entry in entries]


def _tools(tmp_path: Path, *rows: Any) -> tuple[list[ToolCall], list[ToolResult]]:
    entries, _ = read(write_rows(tmp_path / "rollout.jsonl", [codex_meta(), *rows]))
    calls = [entry.tool_call for entry in entries if entry.tool_call is not None]
    return calls, [entry.tool_result for entry in entries if entry.tool_result is not None]


def test_a_session_tells_what_it_is(tmp_path: Path) -> None:
    parent = codex_meta("parent", "/other")
    rows = [
        codex_meta(),
        parent,
        codex_row("turn_context", cwd="/project", model="gpt-x"),
        message("user", "<environment_context>\n</environment_context>"),
        *said("user", "Count the files"),
        event("thread_name_updated", thread_name="Counting"),
    ]
    _, summary = read(write_rows(tmp_path / "rollout.jsonl", rows))
    assert (summary.session_id, summary.cwd) == ("t1", "/project")
    assert (summary.version, summary.model) == ("0.169.0", "gpt-x")
    assert (summary.title, summary.first_words) == ("Counting", "Count the files")
    assert (summary.turns, summary.unknown_lines) == (1, 0)
    assert summary.started == TIME


def test_the_thread_of_a_sub_agent_says_so(tmp_path: Path) -> None:
    meta = codex_meta()
    meta["payload"]["source"] = {"subagent": {"thread_spawn": {"agent_nickname": "Ada"}}}
    _, summary = read(write_rows(tmp_path / "rollout.jsonl", [meta]))
    assert summary.agent == "Ada"


@pytest.mark.parametrize("newer", [True, False])
def test_what_is_said_twice_is_told_once(tmp_path: Path, newer: bool) -> None:
    def pair(role: str, words: str) -> list[dict[str, Any]]:
        name = "user_message" if role == "user" else "agent_message"
        return said(role, words) if newer else [message(role, words), event(name, message=words)]

    words = [("user", "go on"), ("assistant", "Done."), ("user", "go on"), ("assistant", "Done.")]
    added = [message("developer", "be good"), message("user", "# AGENTS.md instructions\n")]
    assert _told(tmp_path, *added, *(row for one in words for row in pair(*one))) == words


def test_reasoning_is_told_once_and_may_be_secret(tmp_path: Path) -> None:
    rows = [
        event("agent_reasoning", text="one"),
        item("reasoning", summary=[{"type": "summary_text", "text": "one"}]),
        done("Reasoning", summary_text=["one"], raw_content=[]),
        item("reasoning", summary=[], encrypted_content="…"),
    ]
    assert _told(tmp_path, *rows) == [("reasoning", "one"), ("reasoning", "")]


COMMAND_ITEM = item("function_call", call_id="c", name="exec_command", arguments='{"cmd": "ls"}')
COMMAND_DONE = done(
    "CommandExecution",
    id="c",
    command=["/bin/bash", "-lc", "ls"],
    aggregated_output="a.txt",
    exit_code=0,
    status="completed",
)
COMMAND_OUTPUT = item("function_call_output", call_id="c", output="Exit code: 0\nOutput:\na.txt")


@pytest.mark.parametrize(
    "rows",
    [[COMMAND_ITEM, COMMAND_DONE, COMMAND_OUTPUT], [COMMAND_ITEM, COMMAND_OUTPUT], [COMMAND_DONE]],
)
def test_a_command_is_one_call_and_one_result_however_it_is_told(
    tmp_path: Path, rows: list[Any]
) -> None:
    """The last: it was run from within a tool that runs code."""
    [call], [result] = _tools(tmp_path, *rows)
    assert (call.id, call.name, call.kind) == ("c", "command_execution", "shell")
    assert call.arguments == {"command": "ls"}
    assert (result.call_id, result.status, result.content) == ("c", "success", "a.txt")


def test_a_command_that_failed(tmp_path: Path) -> None:
    output = "Chunk ID: 1\nProcess exited with code 2\nOutput:\nno such file"
    row = item("function_call_output", call_id="c", output=output)
    _, [result] = _tools(tmp_path, COMMAND_ITEM, row)
    assert (result.status, result.content) == ("error", "no such file")


FILES = {"/project/a.txt": {"type": "add"}, "/project/b.txt": {"type": "update"}}


@pytest.mark.parametrize(
    "rows",
    [
        [
            item("custom_tool_call", call_id="c", name="apply_patch", input=PATCH),
            done("FileChange", id="c", changes=FILES, status="completed"),
            item("custom_tool_call_output", call_id="c", output="Exit code: 0\nOutput:\nok"),
        ],
        [done("FileChange", id="c", changes=FILES, status="completed")],
    ],
)
def test_a_patch_is_a_call_and_a_result_of_each_file(tmp_path: Path, rows: list[Any]) -> None:
    calls, results = _tools(tmp_path, *rows)
    assert [(call.id, call.kind, call.arguments) for call in calls] == [
        ("c.1", "write", {"path": "a.txt", "change": "add"}),
        ("c.2", "edit", {"path": "b.txt", "change": "update"}),
    ]
    assert [(result.call_id, result.status) for result in results] == [
        ("c.1", "success"),
        ("c.2", "success"),
    ]


@pytest.mark.parametrize(
    "rows",
    [
        [
            item("function_call", call_id="c", name="find", namespace="mcp__files__",
                 arguments='{"q": "x"}'),
            item("function_call_output", call_id="c", output="found"),
        ],
        [
            done("McpToolCall", id="c", server="files", tool="find", arguments={"q": "x"},
                 status="completed", result={"content": [{"type": "text", "text": "found"}]}),
        ],
    ],
)  # fmt: skip
def test_a_call_of_an_mcp_server(tmp_path: Path, rows: list[Any]) -> None:
    [call], [result] = _tools(tmp_path, *rows)
    assert (call.name, call.kind, call.arguments) == ("files::find", "mcp", {"q": "x"})
    assert (result.call_id, result.content) == ("c", "found")


@pytest.mark.parametrize(
    ("row", "name", "kind"),
    [
        (item("web_search_call", id="c", action={"query": "x"}), "web_search", "web"),
        (done("WebSearch", id="c", query="x"), "WebSearch", "web"),
        (item("local_shell_call", call_id="c", action={"command": ["ls"]}),
         "command_execution", "shell"),
        (item("function_call", call_id="c", name="update_plan", arguments=None),
         "update_plan", "other"),
        (item("function_call", call_id="c", name="spawn_agent", arguments="{"),
         "spawn_agent", "agent"),
    ],
)  # fmt: skip
def test_other_tools(tmp_path: Path, row: dict[str, Any], name: str, kind: str) -> None:
    [call], results = _tools(tmp_path, row)
    assert (call.id, call.name, call.kind) == ("c", name, kind)
    assert results == []


def test_what_happened_to_the_session_is_a_notice(tmp_path: Path) -> None:
    rows = [
        codex_row("compacted", message="", replacement_history=[]),
        event("context_compacted"),
        event("turn_aborted", reason="interrupted"),
        event("error", message="busy"),
        event("task_complete", error={"message": "gave up"}),
        done("Plan", id="x", text="first this"),
    ]
    assert _told(tmp_path, *rows) == [
        ("notice", "the conversation was compacted"),
        ("notice", "the turn was aborted: interrupted"),
        ("notice", "error: busy"),
        ("notice", "error: gave up"),
        ("notice", "plan: first this"),
    ]


@pytest.mark.parametrize(
    "row",
    [
        codex_row("brand_new"),
        event("brand_new"),
        item("brand_new"),
        done("BrandNew", id="x"),
    ],
)
def test_what_we_do_not_understand_is_counted_and_kept(tmp_path: Path, row: Any) -> None:
    entries, summary = read(write_rows(tmp_path / "rollout.jsonl", [codex_meta(), row]))
    assert summary.unknown_lines == 1
    assert [entry.role for entry in entries] == ["notice"]


def test_a_recording_of_events(tmp_path: Path) -> None:
    command = {"id": "item_1", "type": "command_execution", "command": "bash -lc 'ls'"}
    rows = [
        {"type": "thread.started", "thread_id": "t1"},
        {"type": "turn.started"},
        {"type": "item.started", "item": command},
        {"type": "item.completed", "item": {**command, "aggregated_output": "a", "exit_code": 0}},
        {"type": "item.completed", "item": {"id": "i2", "type": "agent_message", "text": "One."}},
        {"type": "turn.completed", "usage": {}},
        {"type": "turn.started"},
        {"type": "item.completed", "item": {"id": "i3", "type": "brand_new"}},
        {"type": "error", "message": "busy"},
        {"type": "turn.failed", "error": {"message": "gave up"}},
        {"type": "thread.started", "thread_id": "t1"},
        {"type": "turn.started"},
        {"type": "item.completed", "item": {**command, "aggregated_output": "b", "exit_code": 1}},
    ]
    entries, summary = read(write_rows(tmp_path / "r.jsonl", rows))
    assert [(entry.turn, *told(entry)) for entry in entries if entry.line != 8] == [
        (1, "tool_call", "command_execution"),
        (1, "tool_result", "a"),
        (1, "assistant", "One."),
        (2, "notice", "busy"),
        (2, "notice", "the turn failed: gave up"),
        (3, "tool_call", "command_execution"),
        (3, "tool_result", "b"),
    ]
    assert (summary.session_id, summary.turns, summary.unknown_lines) == ("t1", 3, 1)
