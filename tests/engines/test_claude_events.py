"""The parser of claude's event stream, fed with lines as the CLI writes them."""

from __future__ import annotations

import json
from pathlib import PurePath
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillup.engines.claude_code.events import ClaudeEvents, portable_name
from skillup.engines.codex.events import CodexEvents
from skillup.engines.events import EventParser
from skillup.engines.scripted.engine import ScriptedEvents

INIT = {
    "type": "system",
    "subtype": "init",
    "session_id": "S",
    "model": "claude-opus-4-8",
    "claude_code_version": "2.1.197",
    "mcp_servers": [{"name": "good", "status": "connected"}, {"name": "bad", "status": "failed"}],
}
RESULT: dict[str, Any] = {
    "type": "result",
    "subtype": "success",
    "is_error": False,
    "num_turns": 2,
    "result": "Done.",
    "session_id": "S",
    "total_cost_usd": 0.0015,
    "usage": {
        "input_tokens": 200,
        "cache_creation_input_tokens": 3,
        "cache_read_input_tokens": 14,
        "output_tokens": 20,
    },
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


def parse(*events: dict[str, Any] | bytes) -> ClaudeEvents:
    parser = ClaudeEvents()
    for event in events:
        parser.feed(event if isinstance(event, bytes) else json.dumps(event).encode())
    return parser


def test_a_turn_with_tools_in_order() -> None:
    turn = parse(
        INIT,
        assistant({"type": "thinking", "thinking": "Hmm."}),
        assistant(text("Running.")),
        assistant(tool_use("t1", "Bash", command="echo hi")),
        assistant(tool_use("t2", "mcp__srv__add_two", a=1)),
        tool_result("t2", [{"type": "text", "text": "3"}, {"type": "image", "source": {}}]),
        tool_result("t1", "Exit code 3\nbad", is_error=True),
        assistant(text("Done.")),
        RESULT,
    )

    assert turn.finished
    assert turn.failure is None
    assert (turn.session_id, turn.model, turn.version) == ("S", "claude-opus-4-8", "2.1.197")
    assert turn.response == "Done."
    assert turn.cost_usd == 0.0015
    assert turn.transcript.unknown_events == 0
    assert turn.transcript.notices == ["MCP server bad failed"]
    kinds = [item.type for item in turn.transcript.items if item.type != "notice"]
    assert kinds == [
        "reasoning",
        "message",
        "tool_call",
        "tool_call",
        "tool_result",
        "tool_result",
        "message",
    ]
    calls = [item.tool_call for item in turn.transcript.items if item.tool_call]
    assert [(call.id, call.name, call.kind) for call in calls] == [
        ("t1", "Bash", "shell"),
        ("t2", "srv::add_two", "mcp"),
    ]
    results = [item.tool_result for item in turn.transcript.items if item.tool_result]
    assert [(r.call_id, r.status, r.content) for r in results] == [
        ("t2", "success", "3\n[image]"),
        ("t1", "error", "Exit code 3\nbad"),
    ]


def test_cached_tokens_count_as_input() -> None:
    usage = parse(INIT, RESULT).usage

    assert usage is not None
    assert usage.input_tokens == 217
    assert usage.cached_input_tokens == 14
    assert usage.cache_write_tokens == 3
    assert usage.output_tokens == 20
    assert usage.reasoning_tokens is None
    assert usage.requests is None


def test_the_usage_of_all_models_outranks_the_plain_one_which_may_be_zero() -> None:
    counts = {
        "inputTokens": 10,
        "outputTokens": 5,
        "cacheReadInputTokens": 1,
        "cacheCreationInputTokens": 2,
    }
    zero = dict.fromkeys(RESULT["usage"], 0)

    usage = parse({**RESULT, "usage": zero, "modelUsage": {"a": counts, "b": counts}}).usage

    assert usage is not None
    assert (usage.input_tokens, usage.output_tokens) == (26, 10)


def test_what_is_not_told_is_unknown_not_zero() -> None:
    turn = parse({"type": "result", "subtype": "success", "is_error": False, "result": "x"})

    assert turn.usage is None
    assert turn.cost_usd is None


def test_lines_of_a_sub_agent_carry_its_call_and_are_not_the_answer() -> None:
    turn = parse(
        INIT,
        assistant(tool_use("t1", "Agent", subagent_type="Explore", prompt="look")),
        assistant(text("I looked."), parent_tool_use_id="t1"),
        assistant(tool_use("t2", "Read", file_path="x"), parent_tool_use_id="t1"),
        assistant(text("It is there.")),
        {**RESULT, "result": ""},
    )

    assert [(item.agent, item.type) for item in turn.transcript.items if item.type != "notice"] == [
        (None, "tool_call"),
        ("t1", "message"),
        ("t1", "tool_call"),
        (None, "message"),
    ]
    assert turn.response == "It is there."


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("Bash", ("Bash", "shell")),
        ("KillShell", ("KillShell", "shell")),
        ("Read", ("Read", "read")),
        ("Write", ("Write", "write")),
        ("MultiEdit", ("MultiEdit", "edit")),
        ("Grep", ("Grep", "search")),
        ("WebFetch", ("WebFetch", "web")),
        ("Skill", ("Skill", "skill")),
        ("Task", ("Task", "agent")),
        ("TodoWrite", ("TodoWrite", "other")),
        ("mcp__github__search_issues", ("github::search_issues", "mcp")),
    ],
)
def test_names_and_kinds_of_tools(name: str, expected: tuple[str, str]) -> None:
    assert portable_name(name) == expected


@pytest.mark.parametrize(
    ("line", "unknown", "unread"),
    [
        (b'{"type": "brand_new"}', 1, 0),
        (b"Update available", 1, 0),
        (b'warning: x{"type": "assistant"}', 0, 1),
        (b'{"type": "assistant", "text": "\xff\xfe"}', 0, 1),
        (b'{"type": "assistant", "text": "cut o', 0, 1),
        (b'and its end"}', 0, 1),
    ],
)
def test_lines_that_may_have_been_events_are_counted_apart(
    line: bytes, unknown: int, unread: int
) -> None:
    """S4: what an unread line told, nobody knows; it was counted as an event without meaning."""
    parsers: list[EventParser] = [ClaudeEvents(), CodexEvents(PurePath("/w")), ScriptedEvents()]
    for turn in parsers:
        turn.feed(line)
        assert (turn.transcript.unknown_events, turn.transcript.unread_lines) == (unknown, unread)


def test_a_flood_of_unknown_events_is_counted_and_not_kept() -> None:
    """S9."""
    turn = parse(INIT, *[{"type": "brand_new", "n": n} for n in range(3000)], RESULT)

    assert turn.transcript.unknown_events == 3000
    assert len(turn.transcript.items) < 1100
    assert turn.finished


def test_unknown_events_are_counted_and_kept() -> None:
    turn = parse(
        INIT,
        {"type": "brand_new", "payload": "P1"},
        {"type": "system", "subtype": "brand_new_too"},
        assistant({"type": "hologram", "data": 1}),
        b"this is not JSON",
        b"[1, 2]",
        b"",
        b"   ",
        RESULT,
    )

    assert turn.transcript.unknown_events == 5
    kept = [item.text or "" for item in turn.transcript.items if item.type == "notice"]
    assert sum(text.startswith("unknown event: ") for text in kept) == 5
    assert any("P1" in text for text in kept)
    assert any("this is not JSON" in text for text in kept)
    assert turn.finished


def test_without_a_result_the_turn_is_not_finished() -> None:
    turn = parse(INIT, assistant(text("I was about to")))

    assert not turn.finished
    assert turn.failure is None


def api_error(error: str, words: str) -> dict[str, Any]:
    return assistant(text(words), message={"model": "<synthetic>"}, error=error)


@pytest.mark.parametrize(
    ("before", "result", "kind"),
    [
        (
            [api_error("authentication_failed", "Failed to authenticate. API Error: 401 no")],
            {"is_error": True, "api_error_status": 401, "result": "Failed to authenticate."},
            "auth",
        ),
        (
            [api_error("authentication_failed", "Not logged in · Please run /login")],
            {
                "is_error": True,
                "api_error_status": None,
                "result": "Not logged in · Please run /login",
            },
            "auth",
        ),
        (
            [],
            {"is_error": True, "api_error_status": 429, "result": "Request rejected"},
            "rate_limit",
        ),
        (
            [api_error("rate_limit", "limit reached")],
            {"is_error": True, "result": "limit reached"},
            "rate_limit",
        ),
        *(
            ([], {"is_error": True, "api_error_status": status, "result": said}, "quota")
            for status, said in (
                (429, "You've hit your limit · resets 8pm (Europe/Berlin)"),
                (429, "You've hit your weekly limit · resets Mon 9am"),
                (429, "You've reached your usage limit"),
                (None, "Claude AI usage limit reached|1767225600"),
                (429, "You're out of extra usage · resets 3pm"),
                (400, "API Error: 400 Your credit balance is too low to access the API"),
                (None, "Credit balance is too low"),
                (402, "API Error: 402 Payment Required"),
            )
        ),
        (
            [],
            {
                "is_error": True,
                "api_error_status": 429,
                "result": "API Error: 429 This request would exceed your account's rate limit. "
                "Please try again later.",
            },
            "rate_limit",
        ),
        ([], {"is_error": True, "api_error_status": 529, "result": "API Error"}, "overloaded"),
        ([], {"is_error": True, "api_error_status": 404, "result": "issue"}, "model_error"),
        (
            [api_error("server_error", "API Error: Unable to connect to API (ConnectionRefused)")],
            {"is_error": True, "result": "API Error: Unable to connect to API (ConnectionRefused)"},
            "network",
        ),
        (
            [api_error("max_output_tokens", "API Error: exceeded the maximum")],
            {"is_error": True, "result": "API Error: exceeded the maximum"},
            "model_error",
        ),
        (
            [api_error("unknown", "API Error: Failed to parse JSON")],
            {"is_error": True, "result": "API Error: Failed to parse JSON"},
            "model_error",
        ),
        (
            [],
            {
                "subtype": "error_max_turns",
                "is_error": True,
                "result": None,
                "errors": ["Reached maximum number of turns (2)"],
            },
            "max_turns",
        ),
        (
            [],
            {
                "subtype": "error_max_budget_usd",
                "is_error": True,
                "result": None,
                "errors": ["Reached maximum budget ($1)"],
            },
            "budget",
        ),
        (
            [],
            {
                "subtype": "error_during_execution",
                "is_error": True,
                "result": None,
                "errors": ["No conversation found with session ID: X"],
            },
            "session_lost",
        ),
        ([], {"subtype": "error_during_execution", "is_error": True, "result": ""}, "crash"),
        ([], {"num_turns": 0, "result": "Unknown command: /x"}, "unsupported"),
        (
            [],
            {"num_turns": 0, "result": "/exit isn't available in this environment."},
            "unsupported",
        ),
    ],
)
def test_failures_and_their_kinds(
    before: list[dict[str, Any]], result: dict[str, Any], kind: str
) -> None:
    turn = parse(INIT, *before, {**RESULT, **result})

    assert turn.failure is not None
    assert turn.failure.kind == kind
    assert turn.failure.text


def test_an_answer_that_quotes_an_error_is_an_answer() -> None:
    turn = parse(INIT, {**RESULT, "result": "Unknown command: /x is what it printed. 401!"})

    assert turn.failure is None


def test_what_the_cli_itself_says_is_no_message_of_the_agent() -> None:
    turn = parse(INIT, api_error("rate_limit", "API Error: slow"), {**RESULT, "is_error": True})

    assert [item.text for item in turn.transcript.items if item.type == "message"] == []
    assert "API Error: slow" in turn.transcript.notices


def test_half_characters_and_odd_numbers_do_not_stop_it() -> None:
    turn = parse(
        b'{"type": "assistant", "message": {"content": [{"type": "text", "text": "a\\ud83d"}]}}',
        b'{"type": "assistant", "message": {"content": [{"type": "text", "text": "\\ud83d\\ude00"}'
        b', {"type": "tool_use", "id": "1", "name": "Bash", "input": {"n": NaN}}]}}',
        RESULT,
    )

    messages = [item.text for item in turn.transcript.items if item.type == "message"]
    assert messages == ["a\ufffd", "\U0001f600"]
    assert all(json.loads(item.model_dump_json()) for item in turn.transcript.items)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=8,
)
KEYS = [
    "type",
    "subtype",
    "message",
    "content",
    "error",
    "result",
    "usage",
    "modelUsage",
    "mcp_servers",
    "errors",
]
VALUES = [
    "system",
    "init",
    "assistant",
    "user",
    "result",
    "text",
    "tool_use",
    "tool_result",
    "api_retry",
]
events = st.dictionaries(
    st.sampled_from(KEYS), st.sampled_from(VALUES) | json_values, min_size=1, max_size=6
)


@given(st.lists(events | st.binary(max_size=20), max_size=5))
def test_no_line_makes_it_raise(lines: list[Any]) -> None:
    turn = parse(*lines)

    assert all(json.loads(item.model_dump_json()) for item in turn.transcript.items)


@pytest.mark.parametrize("answer", [None, {"text": "Done."}, ["Done."], 1])
def test_a_result_without_a_text_is_no_answer(answer: Any) -> None:
    turn = parse(INIT, {**RESULT, "result": answer})

    assert turn.failure is not None
    assert turn.failure.kind == "protocol"


def test_arguments_that_are_nested_too_deep_for_a_record_are_cut() -> None:
    nested: Any = "bottom"
    for _ in range(150):
        nested = {"a": [nested]}
    call = {"type": "tool_use", "id": "t", "name": "Bash", "input": {"deep": nested, "flat": 1}}

    turn = parse(INIT, {"type": "assistant", "message": {"content": [call]}}, RESULT)

    recorded = turn.transcript.items[-1].model_dump_json()
    assert '"flat":1' in recorded
    assert "nested too deep" in recorded
    assert "bottom" not in recorded


@pytest.mark.parametrize("count", [-1, 10**40, True, "7", 1.5])
def test_a_number_that_can_be_no_count_is_not_known(count: Any) -> None:
    turn = parse(INIT, {**RESULT, "usage": {"input_tokens": count}, "modelUsage": {}})

    assert turn.usage is None


@pytest.mark.parametrize("cost", [-0.1, 1e400, True, "0.1", 10**400])
def test_a_number_that_can_be_no_cost_is_not_known(cost: Any) -> None:
    parser = ClaudeEvents()
    text = "1e400" if cost == 1e400 else json.dumps(cost)
    line = json.dumps({**RESULT, "total_cost_usd": "COST"}).replace('"COST"', text)
    parser.feed(line.encode())

    assert parser.cost_usd is None
