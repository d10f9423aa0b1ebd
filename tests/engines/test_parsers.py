"""The parsers of both event streams, fed with lines as the CLIs write them."""

from __future__ import annotations

import json
from pathlib import PurePosixPath
from typing import Any

import pytest

from skillup.engines.claude_code.events import ClaudeEvents
from skillup.engines.codex.events import CodexEvents
from skillup.engines.events import EventParser
from skillup.engines.scripted.engine import ScriptedEvents
from skillup.schema.record import ToolCall, ToolResult

Event = dict[str, Any] | bytes


def fed(parser: EventParser, events: tuple[Event, ...]) -> None:
    for event in events:
        parser.feed(event if isinstance(event, bytes) else json.dumps(event).encode())


def parse(*events: Event) -> ClaudeEvents:
    parser = ClaudeEvents()
    fed(parser, events)
    return parser


def parse_codex(*events: Event) -> CodexEvents:
    parser = CodexEvents(PurePosixPath("/work"))
    fed(parser, events)
    return parser


def calls_of(turn: EventParser) -> list[ToolCall]:
    return [item.tool_call for item in turn.items if item.tool_call]


def results_of(turn: EventParser) -> list[tuple[str, str, str]]:
    results: list[ToolResult | None] = [item.tool_result for item in turn.items]
    return [(one.call_id, one.status, one.content) for one in results if one]


def messages_of(turn: EventParser) -> list[str | None]:
    return [item.text for item in turn.items if item.type == "message"]


INIT = {
    "type": "system",
    "subtype": "init",
    "session_id": "S",
    "model": "claude-opus-4-8",
    "claude_code_version": "2.1.197",
    "mcp_servers": [{"name": "good", "status": "connected"}, {"name": "bad", "status": "failed"}],
}
COUNTED = {
    "input_tokens": 200,
    "cache_creation_input_tokens": 3,
    "cache_read_input_tokens": 14,
    "output_tokens": 20,
}
RESULT: dict[str, Any] = {
    "type": "result",
    "subtype": "success",
    "is_error": False,
    "num_turns": 2,
    "result": "Done.",
    "session_id": "S",
    "total_cost_usd": 0.0015,
    "usage": COUNTED,
}


def assistant(*blocks: dict[str, Any], **keys: Any) -> dict[str, Any]:
    message: dict[str, Any] = {"id": "msg_1", "role": "assistant", "model": "claude-opus-4-8"}
    message |= {"content": list(blocks), **keys.pop("message", {})}
    return {"type": "assistant", "message": message, "parent_tool_use_id": None, **keys}


def tool_use(call_id: str, name: str, **arguments: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": call_id, "name": name, "input": arguments}


def tool_result(call_id: str, content: Any, **keys: Any) -> dict[str, Any]:
    block = {"type": "tool_result", "tool_use_id": call_id, "content": content, **keys}
    return {"type": "user", "message": {"role": "user", "content": [block]}}


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def test_a_turn_of_claude_with_tools_and_a_sub_agent_in_order() -> None:
    turn = parse(
        INIT,
        assistant({"type": "thinking", "thinking": "Hmm."}),
        assistant(text("Running.")),
        assistant(tool_use("t1", "Bash", command="echo hi")),
        assistant(tool_use("t2", "mcp__srv__add_two", a=1)),
        tool_result("t2", [{"type": "text", "text": "3"}, {"type": "image", "source": {}}]),
        tool_result("t1", "Exit code 3\nbad", is_error=True),
        assistant(tool_use("t3", "Agent", prompt="look")),
        assistant(text("I looked."), parent_tool_use_id="t3"),
        assistant(tool_use("t4", "Read", file_path="x"), parent_tool_use_id="t3"),
        assistant(text("Done.")),
        {**RESULT, "result": ""},
    )

    assert (turn.finished, turn.response, turn.cost_usd) == (True, "Done.", 0.0015)
    assert (turn.session_id, turn.model, turn.version) == ("S", "claude-opus-4-8", "2.1.197")
    assert turn.unknown_events == 0
    assert turn.notices == ["MCP server bad failed"]
    kinds = [(item.type, item.agent) for item in turn.items if item.type != "notice"]
    assert kinds == [
        ("reasoning", None),
        ("message", None),
        *[("tool_call", None)] * 2,
        *[("tool_result", None)] * 2,
        ("tool_call", None),
        *[("message", "t3"), ("tool_call", "t3")],
        ("message", None),
    ]
    assert [(call.id, call.name, call.kind) for call in calls_of(turn)] == [
        ("t1", "Bash", "shell"),
        ("t2", "srv::add_two", "mcp"),
        ("t3", "Agent", "agent"),
        ("t4", "Read", "read"),
    ]
    assert results_of(turn) == [
        ("t2", "success", "3\n[image]"),
        ("t1", "error", "Exit code 3\nbad"),
    ]


PER_MODEL = {
    "inputTokens": 10,
    "outputTokens": 5,
    "cacheReadInputTokens": 1,
    "cacheCreationInputTokens": 2,
}
NO_COUNT = [-1, 10**40, True, "7", 1.5]


@pytest.mark.parametrize(
    ("given_keys", "expected"),
    [
        ({}, (217, 14, 3, 20)),  # cached tokens count as input
        # That of all models outranks the plain one, which may be zero.
        (
            {"usage": dict.fromkeys(COUNTED, 0), "modelUsage": {"a": PER_MODEL, "b": PER_MODEL}},
            (26, 2, 4, 10),
        ),
        ({"usage": None}, None),
        *(({"usage": {"input_tokens": n}, "modelUsage": {}}, None) for n in NO_COUNT),
    ],
)
def test_the_tokens_of_a_turn_of_claude(
    given_keys: dict[str, Any], expected: tuple[int, ...] | None
) -> None:
    usage = parse(INIT, {**RESULT, **given_keys}).usage

    if expected is None:  # what is not told is unknown, not zero
        assert usage is None
        return
    assert usage is not None
    counts = usage.model_dump(exclude={"reasoning_tokens", "requests"})
    assert tuple(counts.values()) == expected
    assert (usage.reasoning_tokens, usage.requests) == (None, None)


@pytest.mark.parametrize(
    ("line", "unknown", "unread"),
    [
        (b'{"type": "brand_new", "payload": "P1"}', 1, 0),
        (b"Update available", 1, 0),
        (b"[1, 2]", 1, 0),
        (b"   ", 0, 0),
        (b'warning: x{"type": "assistant"}', 0, 1),
        (b'{"type": "assistant", "text": "\xff\xfe"}', 0, 1),
        (b'{"type": "assistant", "text": "cut o', 0, 1),
        (b'and its end"}', 0, 1),
    ],
)
def test_lines_that_are_not_understood_are_counted_and_kept(
    line: bytes, unknown: int, unread: int
) -> None:
    """S4: what an unread line told, nobody knows; it was counted as an event without meaning."""
    for turn in (ClaudeEvents(), CodexEvents(PurePosixPath("/w")), ScriptedEvents()):
        turn.feed(line)
        found = turn
        assert (found.unknown_events, found.unread_lines) == (unknown, unread)
        assert [str(item.text)[:15] for item in found.items] == ["unknown event: "] * (
            unknown + unread
        )


def test_a_flood_of_unknown_events_is_counted_and_not_kept() -> None:
    """S9."""
    turn = parse(INIT, *[{"type": "brand_new", "n": n} for n in range(3000)], RESULT)

    assert turn.unknown_events == 3000
    assert len(turn.items) < 1100
    assert turn.finished
    unfinished = parse(INIT, assistant(text("I was about to")))
    assert (unfinished.finished, unfinished.failure) == (False, None)


NOT_HERE = "/exit isn't available in this environment."
REFUSED = "API Error: Unable to connect to API (ConnectionRefused)"
RATE = "API Error: 429 This request would exceed your account's rate limit. Please try again later."
MAX_TURNS = {"subtype": "error_max_turns", "is_error": True, "result": None}
EXECUTION = {"subtype": "error_during_execution", "is_error": True, "result": None}


def failed(said: str, status: int | None = None) -> dict[str, Any]:
    return {"is_error": True, "result": said, "api_error_status": status}


@pytest.mark.parametrize(
    ("api_error", "result", "kind"),
    [
        ("authentication_failed", failed("Failed to authenticate.", 401), "auth"),
        ("rate_limit", failed("limit reached"), "rate_limit"),
        (None, failed("You've hit your limit · resets 8pm (Europe/Berlin)", 429), "quota"),
        (None, failed("Claude AI usage limit reached|1767225600"), "quota"),
        (None, failed("API Error: 400 Your credit balance is too low", 400), "quota"),
        (None, failed(RATE, 429), "rate_limit"),
        (None, failed("API Error", 529), "overloaded"),
        (None, failed("issue", 404), "model_error"),
        ("server_error", failed(REFUSED), "network"),
        (None, {**MAX_TURNS, "errors": ["Reached maximum number of turns (2)"]}, "max_turns"),
        (None, {**MAX_TURNS, "subtype": "error_max_budget_usd"}, "budget"),
        (None, {**EXECUTION, "errors": ["No conversation found with ID: X"]}, "session_lost"),
        (None, {**EXECUTION, "result": ""}, "crash"),
        (None, {"num_turns": 0, "result": "Unknown command: /x"}, "unsupported"),
        (None, {"num_turns": 0, "result": NOT_HERE}, "unsupported"),
        (None, {"result": "Unknown command: /x is what it printed. 401!"}, None),
        *((None, {"result": answer}, "protocol") for answer in (None, {"text": "x"}, ["x"], 1)),
    ],
)
def test_failures_of_claude_and_their_kinds(
    api_error: str | None, result: dict[str, Any], kind: str | None
) -> None:
    said = api_error and assistant(
        text("API Error: slow"), message={"model": "<synthetic>"}, error=api_error
    )
    turn = parse(INIT, *([said] if said else []), {**RESULT, **result})

    assert (turn.failure and turn.failure.kind) == kind
    assert turn.failure is None or turn.failure.text
    if said:  # what the CLI itself says is no message of the agent
        assert messages_of(turn) == []
        assert "API Error: slow" in turn.notices


def test_what_no_record_can_hold_is_mended() -> None:
    nested: Any = "bottom"
    for _ in range(150):
        nested = {"a": [nested]}
    call = {"type": "tool_use", "id": "t", "name": "Bash", "input": {"deep": nested, "flat": 1}}
    turn = parse(
        b'{"type": "assistant", "message": {"content": [{"type": "text", "text": "a\\ud83d"}]}}',
        b'{"type": "assistant", "message": {"content": [{"type": "text", "text": "\\ud83d\\ude00"}'
        b', {"type": "tool_use", "id": "1", "name": "Bash", "input": {"n": NaN}}]}}',
        {"type": "assistant", "message": {"content": [call]}},
        RESULT,
    )

    assert messages_of(turn) == ["a\ufffd", "\U0001f600"]
    written = [item.model_dump_json() for item in turn.items]
    assert all(map(json.loads, written))
    assert turn.unread_lines == 1


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


def test_a_turn_of_codex_with_every_kind_of_tool() -> None:
    changes = [
        {"path": "/work/a/new.txt", "kind": "add"},
        {"path": "/work/old.txt", "kind": "update"},
        {"path": "/elsewhere/gone.txt", "kind": "delete"},
    ]
    mcp = {"server": "tiny", "tool": "add"}
    five = {"content": [{"type": "text", "text": "5"}]}
    turn = parse_codex(
        *STARTED,
        item("completed", "item_0", "reasoning", text="Hmm."),
        item("completed", "item_1", "agent_message", text="Running."),
        *command("item_2", "/bin/bash -lc 'echo hi'", "hi\n"),
        *command("item_3", "/bin/zsh -lc \"sed -n '1,9p' x; exit 3\"", "bad\n", 3),
        item("started", "item_4", "file_change", changes=changes, status="in_progress"),
        item("completed", "item_4", "file_change", changes=changes, status="completed"),
        item("completed", "item_5", "mcp_tool_call", **mcp, arguments={"a": 2}, result=five),
        item("completed", "item_6", "mcp_tool_call", **mcp, error={"message": "tool timeout"}),
        item("completed", "item_7", "web_search", query="codex"),
        item("completed", "item_8", "error", message="Model metadata not found"),
        {"type": "error", "message": "Reconnecting... 1/5 (unexpected status 500)"},
        command("item_9", "/bin/sh -c 'sleep 99'")[0],
        item("completed", "item_10", "agent_message", text="Done."),
        COMPLETED,
    )

    assert (turn.finished, turn.failure, turn.session_id) == (True, None, "T")
    assert turn.response == "Done."
    assert turn.usage is None  # the stream has only the total of the thread
    assert turn.unknown_events == 0
    assert [(c.id, c.name, c.kind, c.arguments) for c in calls_of(turn)] == [
        ("item_2", "command_execution", "shell", {"command": "echo hi"}),
        ("item_3", "command_execution", "shell", {"command": "sed -n '1,9p' x; exit 3"}),
        ("item_4.1", "file_change", "write", {"path": "a/new.txt", "change": "add"}),
        ("item_4.2", "file_change", "edit", {"path": "old.txt", "change": "update"}),
        ("item_4.3", "file_change", "edit", {"path": "/elsewhere/gone.txt", "change": "delete"}),
        ("item_5", "tiny::add", "mcp", {"a": 2}),
        ("item_6", "tiny::add", "mcp", {}),
        ("item_7", "web_search", "web", {"query": "codex"}),
        ("item_9", "command_execution", "shell", {"command": "sleep 99"}),
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
    assert messages_of(turn) == ["Running.", "Done."]
    assert turn.notices == [
        "Model metadata not found",
        "Reconnecting... 1/5 (unexpected status 500)",
    ]
    unknown = parse_codex(*STARTED, item("completed", "item_0", "hologram", data="P2"))
    assert unknown.unknown_events == 1
    assert "P2" in (unknown.items[0].text or "")


URL = "http://127.0.0.1:41243/v1/responses"


@pytest.mark.parametrize(
    ("message", "kind"),
    [
        (f"unexpected status 401 Unauthorized: wrong key, url: {URL}", "auth"),
        (f"unexpected status 404 Not Found: no such model, url: {URL}", "model_error"),
        (f"unexpected status 529 <unknown status code>: overloaded, url: {URL}", "overloaded"),
        ("exceeded retry limit, last status: 429 Too Many Requests", "rate_limit"),
        ("We’re currently experiencing high demand, which may cause errors.", "overloaded"),
        ('{"error": {"message": "unexpected status 401", "code": null}}', "model_error"),
        ("Connection failed: error sending request", "network"),
        ("Missing environment variable: `LAB_KEY`.", "auth"),
        ("You’ve hit your usage limit. Upgrade to Plus to continue using Codex", "quota"),
        (f"unexpected status 402 Payment Required: no credits, url: {URL}", "quota"),
        ("Rate limit reached for gpt-5.5. Please try again in 1.5s", "rate_limit"),
    ],
)
def test_failures_of_codex_and_their_kinds(message: str, kind: str) -> None:
    error = {"type": "error", "message": message}
    partly = item("completed", "item_0", "agent_message", text="part")
    turn = parse_codex(*STARTED, partly, error, {"type": "turn.failed", "error": error})
    unfollowed = parse_codex(*STARTED, error)

    assert not turn.finished
    for failure in (turn.failure, unfollowed.failure):
        assert failure is not None
        assert (failure.kind, failure.text) == (kind, message)
    assert message not in turn.notices
