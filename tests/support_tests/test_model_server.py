"""The scripted model server, asked over HTTP without any CLI."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPConnection, HTTPException
from typing import Any

import pytest

from tests.support.model_server import (
    Answer,
    CutStream,
    Drop,
    Garbage,
    Hang,
    HttpError,
    ModelRequest,
    ModelServer,
    Reply,
    Rule,
    Shell,
    Text,
    Usage,
    WriteFile,
    by_rules,
)

ANTHROPIC = "/v1/messages?beta=true"
OPENAI = "/v1/responses"


def ask(
    server: ModelServer,
    method: str,
    path: str,
    body: object = None,
    headers: dict[str, str] | None = None,
) -> tuple[int, str]:
    """The status and body that the server answers."""
    connection = HTTPConnection("127.0.0.1", int(server.url.rpartition(":")[2]), timeout=30)
    try:
        connection.request(method, path, json.dumps(body) if body else None, headers or {})
        response = connection.getresponse()
        return response.status, response.read().decode()
    finally:
        connection.close()


def stream(server: ModelServer, path: str, body: dict[str, Any]) -> list[dict[str, Any]]:
    """The data of the events that a streaming request gets."""
    status, text = ask(server, "POST", path, {"stream": True, **body})
    assert status == 200
    return [json.loads(line[6:]) for line in text.splitlines() if line.startswith("data: ")]


def claude_says(*contents: object) -> dict[str, Any]:
    """A Messages body whose messages alternate between user and assistant."""
    roles = ["user", "assistant"] * len(contents)
    pairs = zip(roles, contents, strict=False)
    return {"model": "m", "messages": [{"role": r, "content": c} for r, c in pairs]}


def codex_says(*texts: str) -> dict[str, Any]:
    """A Responses body of user messages."""
    return {"model": "m", "input": [codex_message("user", text) for text in texts]}


def codex_message(role: str, text: str) -> dict[str, Any]:
    return {"type": "message", "role": role, "content": [{"type": "input_text", "text": text}]}


def test_anthropic_gets_text_and_usage_as_a_stream_and_whole() -> None:
    answer = Answer(Text("hi"), usage=Usage(input=1, cached=2, output=3, cache_write=4))
    with ModelServer(lambda request: answer) as server:
        events = stream(server, ANTHROPIC, claude_says("hello"))
        status, whole = ask(server, "POST", ANTHROPIC, claude_says("hello"))

    assert [event["type"] for event in events] == [
        "message_start",
        "content_block_start",
        "content_block_delta",
        "content_block_stop",
        "message_delta",
        "message_stop",
    ]
    assert events[2]["delta"] == {"type": "text_delta", "text": "hi"}
    assert status == 200
    assert json.loads(whole)["content"] == [{"type": "text", "text": "hi"}]
    assert json.loads(whole)["usage"] == events[4]["usage"]
    assert events[4]["usage"] == {
        "input_tokens": 1,
        "cache_read_input_tokens": 2,
        "cache_creation_input_tokens": 4,
        "output_tokens": 3,
    }


def test_openai_gets_text_and_usage_as_a_stream() -> None:
    answer = Answer(Text("hi"), usage=Usage(input=5, cached=2, output=3, reasoning=1))
    with ModelServer(lambda request: answer) as server:
        events = stream(server, OPENAI, codex_says("hello"))

    assert events[0]["type"] == "response.created"
    done = events[-1]
    assert done["type"] == "response.completed"
    assert done["response"]["output"][0]["content"][0]["text"] == "hi"
    usage = done["response"]["usage"]
    assert (usage["input_tokens"], usage["output_tokens"], usage["total_tokens"]) == (5, 3, 8)
    assert usage["input_tokens_details"]["cached_tokens"] == 2
    assert usage["output_tokens_details"]["reasoning_tokens"] == 1


def test_what_claude_puts_in_is_not_taken_for_the_users_words() -> None:
    first = [
        {"type": "text", "text": "<system-reminder>\ntoday\n</system-reminder>\n\n"},
        {"type": "text", "text": "hello"},
    ]
    skill = [{"type": "text", "text": "Base directory for this skill: /x\n\nBow."}]
    command = (
        "<command-message>tidy</command-message>\n"
        "<command-name>/tidy</command-name>\n<command-args>it all</command-args>"
    )
    body = claude_says(first, "Hi.", skill, "Bowed.", command)
    body["messages"].append({"role": "system", "content": "skills: tidy"})
    body["system"] = "Primary working directory: /some/where\n"
    with ModelServer() as server:
        ask(server, "POST", ANTHROPIC, body)

    request = server.requests[0]
    assert request.user_texts == ["hello", "/tidy it all"]
    assert request.assistant_texts == ["Hi.", "Bowed."]
    assert request.cwd == "/some/where"
    for harness in ("today", "Bow.", "skills: tidy"):
        assert harness in request.system


def test_what_codex_puts_in_is_not_taken_for_the_users_words() -> None:
    body = codex_says(
        "# AGENTS.md instructions\n\nBow.",
        "<environment_context>\n  <cwd>/some/where</cwd>\n</environment_context>",
        "hello",
        "<skill>\n<name>tidy</name>\n</skill>",
    )
    body["input"].append(codex_message("developer", "permissions"))
    with ModelServer() as server:
        ask(server, "POST", OPENAI, body)

    request = server.requests[0]
    assert request.conversation == [("user", "hello")]
    assert request.cwd == "/some/where"
    for harness in ("Bow.", "<name>tidy</name>", "permissions"):
        assert harness in request.system


@pytest.mark.parametrize("path", [ANTHROPIC, OPENAI])
def test_parallel_calls_are_one_tool_round(path: str) -> None:
    steps: list[Reply] = [(Shell("a"), Shell("b")), WriteFile("f", "x\n"), Text("finished")]
    with ModelServer(by_rules(Rule("work", steps))) as server:
        body = claude_says("work") if path == ANTHROPIC else codex_says("work")
        for _ in steps:
            status, text = ask(server, "POST", path, body)
            assert status == 200
            append_results(body, json.loads(text))

    assert [request.tool_round for request in server.requests] == [0, 1, 2]
    assert [len(request.tool_results) for request in server.requests] == [0, 2, 3]
    assert text.count("finished") == 1


def test_results_stand_in_the_order_of_their_calls() -> None:
    calls: list[dict[str, Any]] = [
        {"type": "tool_use", "id": key, "name": "Bash", "input": {}} for key in ("a", "b")
    ]
    results = [
        {"type": "tool_result", "tool_use_id": key, "content": f"of {key}"} for key in ("b", "a")
    ]
    with ModelServer() as server:
        ask(server, "POST", ANTHROPIC, claude_says("work", calls, results))

    assert server.requests[0].tool_results == ["of a", "of b"]


def append_results(body: dict[str, Any], answer: dict[str, Any]) -> None:
    """Goes on with the conversation as a CLI does that ran the answer's calls."""
    if "content" in answer:
        results = [
            {"type": "tool_result", "tool_use_id": block["id"], "content": "out"}
            for block in answer["content"]
            if block["type"] == "tool_use"
        ]
        body["messages"].append({"role": "assistant", "content": answer["content"]})
        body["messages"].append({"role": "user", "content": results})
        return
    for item in answer["output"]:
        body["input"].append(item)
        if "call_id" in item:
            kind = f"{item['type']}_output"
            body["input"].append({"type": kind, "call_id": item["call_id"], "output": "out"})


def test_concurrent_conversations_do_not_use_up_each_others_answers() -> None:
    def turn(number: int) -> str:
        return str(stream(server, ANTHROPIC, claude_says(f"hello {number}"))[2]["delta"]["text"])

    with ModelServer() as server, ThreadPoolExecutor(16) as pool:
        answers = list(pool.map(turn, range(32)))

    assert answers == [f"Turn 1: hello {number}" for number in range(32)]


def test_a_retry_is_told_from_a_first_try_and_from_other_conversations() -> None:
    def script(request: ModelRequest) -> Reply:
        return (
            HttpError(429, "slow down", {"retry-after": "1"}) if not request.attempt else Text("")
        )

    with ModelServer(script) as server:
        texts = ["one", "two", "one"]
        statuses = [ask(server, "POST", ANTHROPIC, claude_says(text))[0] for text in texts]

    assert statuses == [429, 429, 200]


def test_rules_choose_by_text_turn_and_tool_round() -> None:
    script = by_rules(
        Rule("tidy", [Text("second")], turn=2),
        Rule("tidy", [Shell("ls"), lambda request: Text(f"saw {request.tool_results[0]}")]),
    )
    with ModelServer(script) as server:
        body = claude_says("tidy")
        append_results(body, json.loads(ask(server, "POST", ANTHROPIC, body)[1]))
        last = ask(server, "POST", ANTHROPIC, body)[1]
        second = ask(server, "POST", ANTHROPIC, claude_says("x", "y", "tidy"))[1]
        other = ask(server, "POST", ANTHROPIC, claude_says("else"))[1]

    assert "saw out" in last
    assert "second" in second
    assert "Turn 1: else" in other


@pytest.mark.parametrize("path", [ANTHROPIC, OPENAI])
def test_faults_look_like_faults_to_the_client(path: str) -> None:
    faults: dict[str, Reply] = {
        "cut": CutStream("half"),
        "drop": Drop(),
        "garbage": Garbage("nonsense"),
        "refused": HttpError(401, "bad key"),
    }

    def body(text: str) -> dict[str, Any]:
        return {**(claude_says(text) if path == ANTHROPIC else codex_says(text)), "stream": True}

    with ModelServer(lambda request: faults[request.latest]) as server:
        for broken in ("cut", "drop"):
            with pytest.raises((HTTPException, ConnectionError)):
                ask(server, "POST", path, body(broken))
        assert ask(server, "POST", path, body("garbage")) == (200, "nonsense")
        status, text = ask(server, "POST", path, body("refused"))

    assert status == 401
    assert json.loads(text)["error"]["message"] == "bad key"


def test_closing_the_server_ends_a_model_that_hangs() -> None:
    server = ModelServer(lambda request: Hang())
    with ThreadPoolExecutor() as pool:
        with server:
            waiting = pool.submit(ask, server, "POST", ANTHROPIC, claude_says("hello"))
            server.wait_for_requests()
        assert isinstance(waiting.exception(timeout=30), HTTPException | ConnectionError)


def test_the_clis_other_requests_are_answered_without_the_script() -> None:
    title = claude_says("<session>hello</session>")
    title["output_config"] = {"format": {"schema": {"properties": {"title": {}}}}}
    with ModelServer() as server:
        assert ask(server, "HEAD", "/") == (200, "")
        assert ask(server, "GET", "/v1/models")[0] == 200
        assert ask(server, "GET", OPENAI, headers={"upgrade": "websocket"})[0] == 426
        assert ask(server, "GET", "/elsewhere")[0] == 404
        assert ask(server, "POST", "/v1/messages/count_tokens", claude_says("x"))[0] == 200
        assert "title" in ask(server, "POST", ANTHROPIC, title)[1]

    assert server.requests == []
    assert len(server.background) == 1
    assert server.others[0] == "HEAD /"
    assert len(server.others) == 5


def test_a_script_that_raises_fails_the_test_that_wrote_it() -> None:
    def broken(request: ModelRequest) -> Reply:
        raise LookupError("no such answer")

    server = ModelServer(broken)
    with pytest.raises(LookupError, match="no such answer"), server:
        assert ask(server, "POST", ANTHROPIC, claude_says("hello"))[0] == 500
