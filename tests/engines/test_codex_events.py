"""The parser of codex's event stream, fed with lines as the CLI writes them."""

from __future__ import annotations

import json
from pathlib import PurePosixPath
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillup.engines.codex.events import CodexEvents

WORKSPACE = PurePosixPath("/work")
STARTED = [{"type": "thread.started", "thread_id": "T"}, {"type": "turn.started"}]
COMPLETED = {"type": "turn.completed", "usage": {"input_tokens": 61, "output_tokens": 8}}


def item(what: str, item_id: str, kind: str, **keys: Any) -> dict[str, Any]:
    return {"type": f"item.{what}", "item": {"id": item_id, "type": kind, **keys}}


def command(item_id: str, line: str, output: str = "", exit_code: int = 0) -> list[dict[str, Any]]:
    keys = {"command": line, "aggregated_output": output}
    status = "completed" if exit_code == 0 else "failed"
    return [
        item("started", item_id, "command_execution", **keys, status="in_progress"),
        item("completed", item_id, "command_execution", **keys, exit_code=exit_code, status=status),
    ]


def parse(*events: dict[str, Any] | bytes) -> CodexEvents:
    parser = CodexEvents(WORKSPACE)
    for event in events:
        parser.feed(event if isinstance(event, bytes) else json.dumps(event).encode())
    return parser


def calls_of(turn: CodexEvents) -> list[tuple[str, str, str, dict[str, Any]]]:
    return [
        (entry.tool_call.id, entry.tool_call.name, entry.tool_call.kind, entry.tool_call.arguments)
        for entry in turn.transcript.items
        if entry.tool_call
    ]


def results_of(turn: CodexEvents) -> list[tuple[str, str, str]]:
    return [
        (entry.tool_result.call_id, entry.tool_result.status, entry.tool_result.content)
        for entry in turn.transcript.items
        if entry.tool_result
    ]


def test_a_turn_with_every_kind_of_tool() -> None:
    changes = [
        {"path": "/work/a/new.txt", "kind": "add"},
        {"path": "/work/old.txt", "kind": "update"},
        {"path": "/elsewhere/gone.txt", "kind": "delete"},
    ]
    turn = parse(
        *STARTED,
        item("completed", "item_0", "reasoning", text="Hmm."),
        item("completed", "item_1", "agent_message", text="Running."),
        *command("item_2", "/bin/bash -lc 'echo hi'", "hi\n"),
        *command("item_3", "/bin/zsh -lc \"sed -n '1,9p' x; exit 3\"", "bad\n", 3),
        item("started", "item_4", "file_change", changes=changes, status="in_progress"),
        item("completed", "item_4", "file_change", changes=changes, status="completed"),
        item(
            "completed",
            "item_5",
            "mcp_tool_call",
            server="tiny",
            tool="add",
            arguments={"a": 2},
            result={"content": [{"type": "text", "text": "5"}]},
            error=None,
            status="completed",
        ),
        item(
            "completed",
            "item_6",
            "mcp_tool_call",
            server="tiny",
            tool="add",
            arguments=None,
            result=None,
            error={"message": "tool timeout"},
            status="failed",
        ),
        item("completed", "item_7", "web_search", query="codex"),
        item("completed", "item_8", "agent_message", text="Done."),
        COMPLETED,
    )

    assert turn.finished
    assert turn.failure is None
    assert turn.session_id == "T"
    assert turn.response == "Done."
    assert turn.transcript.unknown_events == 0
    assert calls_of(turn) == [
        ("item_2", "command_execution", "shell", {"command": "echo hi"}),
        ("item_3", "command_execution", "shell", {"command": "sed -n '1,9p' x; exit 3"}),
        ("item_4.1", "file_change", "write", {"path": "a/new.txt", "change": "add"}),
        ("item_4.2", "file_change", "edit", {"path": "old.txt", "change": "update"}),
        ("item_4.3", "file_change", "edit", {"path": "/elsewhere/gone.txt", "change": "delete"}),
        ("item_5", "tiny::add", "mcp", {"a": 2}),
        ("item_6", "tiny::add", "mcp", {}),
        ("item_7", "web_search", "web", {"query": "codex"}),
    ]
    assert results_of(turn) == [
        ("item_2", "success", "hi\n"),
        ("item_3", "error", "bad\n"),
        ("item_4.1", "success", "completed"),
        ("item_4.2", "success", "completed"),
        ("item_4.3", "success", "completed"),
        ("item_5", "success", "5"),
        ("item_6", "error", "tool timeout"),
    ]
    assert [entry.text for entry in turn.transcript.items if entry.type == "message"] == [
        "Running.",
        "Done.",
    ]


def test_the_total_of_the_thread_is_not_the_usage_of_the_turn() -> None:
    parser = parse(*STARTED, COMPLETED)

    assert parser.usage is None
    assert parser.thread_total == COMPLETED["usage"]


def test_a_command_that_did_not_end_is_a_call_without_a_result() -> None:
    parser = parse(*STARTED, command("item_0", "/bin/sh -c 'sleep 99'")[0], COMPLETED)

    assert calls_of(parser)[0][3] == {"command": "sleep 99"}
    assert results_of(parser) == []
    assert list(parser.open_commands) == ["sleep 99"]


def test_warnings_are_notices() -> None:
    turn = parse(
        *STARTED,
        item("completed", "item_0", "error", message="Model metadata not found"),
        {"type": "error", "message": "Reconnecting... 1/5 (unexpected status 500)"},
        item("completed", "item_1", "agent_message", text="Done."),
        COMPLETED,
    )

    assert turn.failure is None
    assert turn.finished
    assert turn.transcript.notices == [
        "Model metadata not found",
        "Reconnecting... 1/5 (unexpected status 500)",
    ]


URL = "http://127.0.0.1:41243/v1/responses"


@pytest.mark.parametrize(
    ("message", "kind"),
    [
        (f"unexpected status 401 Unauthorized: wrong key, url: {URL}", "auth"),
        (f"unexpected status 403 Forbidden: forbidden, url: {URL}", "auth"),
        (f"unexpected status 404 Not Found: no such model, url: {URL}", "model_error"),
        (f"unexpected status 503 Service Unavailable: busy, url: {URL}", "overloaded"),
        (f"unexpected status 529 <unknown status code>: overloaded, url: {URL}", "overloaded"),
        ("exceeded retry limit, last status: 429 Too Many Requests", "rate_limit"),
        ("exceeded retry limit, last status: 401 Unauthorized", "auth"),
        (
            "We’re currently experiencing high demand, which may cause temporary errors.",
            "overloaded",
        ),
        ('{"error": {"message": "unexpected status 401", "code": null}}', "model_error"),
        ("Connection failed: error sending request", "network"),
        ("stream disconnected before completion: error sending request", "network"),
        ("Missing environment variable: `LAB_KEY`.", "auth"),
        ("Incomplete response returned, reason: max_output_tokens", "model_error"),
        ("You've hit your usage limit. Try again later.", "quota"),
        ("You’ve hit your usage limit. Upgrade to Plus to continue using Codex", "quota"),
        ("Quota exceeded. Check your plan and billing details.", "quota"),
        ("Your workspace is out of credits. Add credits to continue.", "quota"),
        ("You hit your spend cap set in your workspace.", "quota"),
        (f"unexpected status 402 Payment Required: no credits, url: {URL}", "quota"),
        ("Rate limit reached for gpt-5.5. Please try again in 1.5s", "rate_limit"),
    ],
)
def test_failures_and_their_kinds(message: str, kind: str) -> None:
    turn = parse(
        *STARTED,
        item("completed", "item_0", "agent_message", text="part"),
        {"type": "error", "message": message},
        {"type": "turn.failed", "error": {"message": message}},
    )

    assert not turn.finished
    assert turn.failure is not None
    assert (turn.failure.kind, turn.failure.text) == (kind, message)
    assert message not in turn.transcript.notices


def test_an_error_that_nothing_follows_is_the_failure() -> None:
    message = "exceeded retry limit, last status: 429 Too Many Requests"

    turn = parse(*STARTED, {"type": "error", "message": message})

    assert turn.failure is not None
    assert turn.failure.kind == "rate_limit"


def test_unknown_events_and_items_are_counted_and_kept() -> None:
    turn = parse(
        *STARTED,
        {"type": "brand.new", "payload": "P1"},
        item("completed", "item_0", "hologram", data="P2"),
        b"not JSON",
        COMPLETED,
    )

    assert turn.transcript.unknown_events == 3
    kept = " ".join(entry.text or "" for entry in turn.transcript.items if entry.type == "notice")
    assert "P1" in kept
    assert "P2" in kept
    assert "not JSON" in kept


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=8,
)
ITEM_TYPES = [
    "agent_message",
    "reasoning",
    "error",
    "command_execution",
    "file_change",
    "mcp_tool_call",
    "web_search",
    "todo_list",
    "collab_tool_call",
]
ITEM_KEYS = [
    "id",
    "text",
    "message",
    "command",
    "aggregated_output",
    "changes",
    "server",
    "tool",
    "arguments",
    "result",
]
items = st.dictionaries(st.sampled_from(ITEM_KEYS), json_values, max_size=4)
item_events = st.builds(
    lambda what, kind, keys: {"type": what, "item": {**keys, "type": kind}},
    st.sampled_from(["item.started", "item.updated", "item.completed"]),
    st.sampled_from(ITEM_TYPES),
    items,
)
other_events = st.dictionaries(
    st.sampled_from(["type", "error", "usage", "message", "item"]),
    st.sampled_from(["turn.completed", "turn.failed", "error", "item.completed"]) | json_values,
    max_size=4,
)


@given(st.lists(item_events | other_events | st.binary(max_size=20), max_size=6))
def test_no_line_makes_it_raise(lines: list[Any]) -> None:
    turn = parse(*lines)

    assert all(json.loads(entry.model_dump_json()) for entry in turn.transcript.items)
