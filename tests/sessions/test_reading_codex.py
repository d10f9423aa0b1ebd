"""Codex's rollouts, and recordings of `codex exec --json`, as entries."""

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


def entries_of(tmp_path: Path, *rows: Any) -> list[tuple[str, str]]:
    entries, _ = read(write_rows(tmp_path / "rollout.jsonl", [codex_meta(), *rows]))
    return [told(entry) for entry in entries]


def tools(tmp_path: Path, *rows: Any) -> tuple[list[ToolCall], list[ToolResult]]:
    entries, _ = read(write_rows(tmp_path / "rollout.jsonl", [codex_meta(), *rows]))
    calls = [entry.item.tool_call for entry in entries if entry.item.tool_call is not None]
    return calls, [
        entry.item.tool_result for entry in entries if entry.item.tool_result is not None
    ]


def test_a_session_and_what_it_is(tmp_path: Path) -> None:
    rows = [
        codex_meta(),
        codex_meta("parent", "/other"),
        codex_row("turn_context", cwd="/project", model="gpt-x"),
        message("user", "<environment_context>\n</environment_context>"),
        *said("user", "Count the files"),
        event("thread_name_updated", thread_name="Counting"),
    ]
    _, summary = read(write_rows(tmp_path / "rollout.jsonl", rows))
    assert (summary.session_id, summary.cwd) == ("t1", "/project")
    assert (summary.version, summary.model) == ("0.169.0", "gpt-x")
    assert (summary.title, summary.first_words) == ("Counting", "Count the files")
    assert (summary.turns, summary.unknown_lines, summary.started) == (1, 0, TIME)


@pytest.mark.parametrize("paginated", [True, False])
def test_what_stands_there_twice_is_one_entry(tmp_path: Path, paginated: bool) -> None:
    def pair(role: str, words: str) -> list[dict[str, Any]]:
        name = "user_message" if role == "user" else "agent_message"
        legacy = [message(role, words), event(name, message=words)]
        return said(role, words) if paginated else legacy

    words = [("user", "go on"), ("assistant", "Done."), ("user", "go on"), ("assistant", "Done.")]
    rows = [
        message("developer", "be good"),
        message("user", "# AGENTS.md instructions\n"),
        *(row for one in words for row in pair(*one)),
        event("agent_reasoning", text="one"),
        item("reasoning", summary=[{"type": "summary_text", "text": "one"}]),
        done("Reasoning", summary_text=["one"], raw_content=[]),
        item("reasoning", summary=[], encrypted_content="…"),
    ]
    assert entries_of(tmp_path, *rows) == [*words, ("reasoning", "one"), ("reasoning", "")]


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
CHUNK = "Chunk ID: 1\nProcess exited with code 2\nOutput:\nno such file"


@pytest.mark.parametrize(
    ("rows", "status", "content"),
    [
        ([COMMAND_ITEM, COMMAND_DONE, COMMAND_OUTPUT], "success", "a.txt"),
        ([COMMAND_ITEM, COMMAND_OUTPUT], "success", "a.txt"),
        ([COMMAND_DONE], "success", "a.txt"),  # run from within a tool that runs code
        (
            [COMMAND_ITEM, item("function_call_output", call_id="c", output=CHUNK)],
            "error",
            "no such file",
        ),
    ],
)
def test_a_command_is_one_call_and_one_result(
    tmp_path: Path, rows: list[Any], status: str, content: str
) -> None:
    [call], [result] = tools(tmp_path, *rows)
    assert (call.id, call.name, call.kind) == ("c", "command_execution", "shell")
    assert call.arguments == {"command": "ls"}
    assert (result.call_id, result.status, result.content) == ("c", status, content)


FILES = {"/project/a.txt": {"type": "add"}, "/project/b.txt": {"type": "update"}}
CHANGED = done("FileChange", id="c", changes=FILES, status="completed")
PATCHED = [
    item("custom_tool_call", call_id="c", name="apply_patch", input=PATCH),
    CHANGED,
    item("custom_tool_call_output", call_id="c", output="Exit code: 0\nOutput:\nok"),
]


@pytest.mark.parametrize("rows", [PATCHED, [CHANGED]])
def test_a_patch_is_a_call_and_a_result_of_each_file(tmp_path: Path, rows: list[Any]) -> None:
    calls, results = tools(tmp_path, *rows)
    assert [(call.id, call.kind, call.arguments) for call in calls] == [
        ("c.1", "write", {"path": "a.txt", "change": "add"}),
        ("c.2", "edit", {"path": "b.txt", "change": "update"}),
    ]
    assert [(one.call_id, one.status) for one in results] == [
        ("c.1", "success"),
        ("c.2", "success"),
    ]


FOUND = {"content": [{"type": "text", "text": "found"}]}
MCP = {"arguments": {"q": "x"}, "status": "completed", "result": FOUND}


def function(name: str, **keys: Any) -> dict[str, Any]:
    return item("function_call", call_id="c", name=name, **keys)


FOUND_BY_MCP = item("function_call_output", call_id="c", output="found")
LOCAL_SHELL = item("local_shell_call", call_id="c", action={"command": ["ls"]})


@pytest.mark.parametrize(
    ("rows", "name", "kind", "content"),
    [
        ([function("find", namespace="mcp__files__"), FOUND_BY_MCP], "files::find", "mcp", "found"),
        ([done("McpToolCall", id="c", server="a", tool="b", **MCP)], "a::b", "mcp", "found"),
        ([item("web_search_call", id="c", action={"query": "x"})], "web_search", "web", None),
        ([done("WebSearch", id="c", query="x")], "web_search", "web", None),
        ([LOCAL_SHELL], "command_execution", "shell", None),
        ([function("update_plan", arguments=None)], "update_plan", "other", None),
        ([function("spawn_agent", arguments="{")], "spawn_agent", "agent", None),
    ],
)
def test_other_tools(
    tmp_path: Path, rows: list[Any], name: str, kind: str, content: str | None
) -> None:
    [call], results = tools(tmp_path, *rows)
    assert (call.id, call.name, call.kind) == ("c", name, kind)
    assert [result.content for result in results] == [content] * (content is not None)


def test_what_happened_to_the_session_is_a_notice(tmp_path: Path) -> None:
    rows = [
        codex_row("compacted", message="", replacement_history=[]),
        event("context_compacted"),
        event("turn_aborted", reason="interrupted"),
        event("error", message="busy"),
        event("task_complete", error={"message": "gave up"}),
        done("Plan", id="x", text="first this"),
    ]
    assert entries_of(tmp_path, *rows) == [
        ("notice", "the conversation was compacted"),
        ("notice", "the turn was aborted: interrupted"),
        ("notice", "error: busy"),
        ("notice", "error: gave up"),
        ("notice", "plan: first this"),
    ]


@pytest.mark.parametrize("row", [item("brand_new"), done("BrandNew", id="x")])
def test_what_is_not_understood_is_counted_and_kept(tmp_path: Path, row: Any) -> None:
    entries, summary = read(write_rows(tmp_path / "rollout.jsonl", [codex_meta(), row]))
    assert summary.unknown_lines == 1
    assert [entry.role for entry in entries] == ["notice"]
