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
both = pytest.mark.parametrize("path", [ANTHROPIC, OPENAI])


def ask(
    server: ModelServer, path: str, body: object = None, method: str = "POST", **headers: str
) -> tuple[int, str]:
    """The status and body that the server answers."""
    connection = HTTPConnection("127.0.0.1", int(server.url.rpartition(":")[2]), timeout=30)
    try:
        connection.request(method, path, json.dumps(body) if body else None, headers)
        response = connection.getresponse()
        return response.status, response.read().decode()
    finally:
        connection.close()


def stream(server: ModelServer, path: str, body: dict[str, Any]) -> list[dict[str, Any]]:
    """The data of the events that a streaming request gets."""
    status, text = ask(server, path, {"stream": True, **body})
    assert status == 200
    return [json.loads(line[6:]) for line in text.splitlines() if line.startswith("data: ")]


def codex_message(role: str, text: str) -> dict[str, Any]:
    return {"type": "message", "role": role, "content": [{"type": "input_text", "text": text}]}


def request_of(path: str, *contents: Any) -> dict[str, Any]:
    """A body; for Messages user and assistant alternate, for Responses all are the user's."""
    if path == OPENAI:
        return {"model": "m", "input": [codex_message("user", text) for text in contents]}
    pairs = zip(["user", "assistant"] * len(contents), contents, strict=False)
    return {"model": "m", "messages": [{"role": role, "content": text} for role, text in pairs]}


def append_results(body: dict[str, Any], answer: dict[str, Any]) -> None:
    """Goes on with the conversation as a CLI does that ran the answer's calls."""
    if "content" in answer:
        results = [
            {"type": "tool_result", "tool_use_id": block["id"], "content": f"of {place}"}
            for place, block in enumerate(answer["content"])
            if block["type"] == "tool_use"
        ]
        body["messages"].append({"role": "assistant", "content": answer["content"]})
        # As claude sends them: in the order in which they ended.
        body["messages"].append({"role": "user", "content": results[::-1]})
        return
    for item in answer["output"]:
        body["input"].append(item)
        if "call_id" in item:
            kind = f"{item['type']}_output"
            body["input"].append({"type": kind, "call_id": item["call_id"], "output": "out"})


def test_text_and_usage_as_a_stream_and_whole() -> None:
    usage = Usage(input=5, cached=2, output=3, cache_write=4, reasoning=1)
    with ModelServer(lambda request: Answer(Text("hi"), usage=usage)) as server:
        events = stream(server, ANTHROPIC, request_of(ANTHROPIC, "hello"))
        whole = json.loads(ask(server, ANTHROPIC, request_of(ANTHROPIC, "hello"))[1])
        done = stream(server, OPENAI, request_of(OPENAI, "hello"))[-1]

    kinds = [event["type"].removeprefix("content_block_") for event in events]
    assert kinds == ["message_start", "start", "delta", "stop", "message_delta", "message_stop"]
    assert events[2]["delta"] == {"type": "text_delta", "text": "hi"}
    assert whole["content"] == [{"type": "text", "text": "hi"}]
    assert whole["usage"] == events[4]["usage"]
    assert whole["usage"]["cache_creation_input_tokens"] == 4
    assert done["type"] == "response.completed"
    assert done["response"]["output"][0]["content"][0]["text"] == "hi"
    assert done["response"]["usage"]["total_tokens"] == 8


def test_what_the_clis_put_in_is_not_taken_for_the_users_words() -> None:
    first = [
        {"type": "text", "text": "<system-reminder>\ntoday\n</system-reminder>\n\n"},
        {"type": "text", "text": "hello"},
    ]
    skill = [{"type": "text", "text": "Base directory for this skill: /x\n\nBow."}]
    command = "<command-name>/tidy</command-name>\n<command-args>it all</command-args>"
    body = request_of(ANTHROPIC, first, "Hi.", skill, "Bowed.", command)
    body["messages"].append({"role": "system", "content": "skills: tidy"})
    body["system"] = "Primary working directory: /some/where\n"
    other = request_of(
        OPENAI,
        "# AGENTS.md instructions\n\nBow.",
        "<environment_context>\n  <cwd>/some/where</cwd>\n</environment_context>",
        "hello",
    )
    other["input"].append(codex_message("developer", "skills: tidy"))
    with ModelServer() as server:
        ask(server, ANTHROPIC, body)
        ask(server, OPENAI, other)

    of_claude, of_codex = server.requests
    assert of_claude.user_texts == ["hello", "/tidy it all"]
    assert of_claude.assistant_texts == ["Hi.", "Bowed."]
    assert "today" in of_claude.system
    assert of_codex.conversation == [("user", "hello")]
    for request in server.requests:
        assert request.cwd == "/some/where"
        assert "Bow." in request.system
        assert "skills: tidy" in request.system


@both
def test_parallel_calls_are_one_tool_round_with_results_in_their_order(path: str) -> None:
    steps: list[Reply] = [(Shell("a"), Shell("b")), WriteFile("f", "x\n"), Text("finished")]
    with ModelServer(by_rules(Rule("work", steps), Rule("x", [Text("2nd")], turn=2))) as server:
        body = request_of(path, "work")
        for _ in steps:
            status, text = ask(server, path, body)
            assert status == 200
            append_results(body, json.loads(text))
        assert "Turn 1: else" in ask(server, path, request_of(path, "else"))[1]

    assert [request.tool_round for request in server.requests[:3]] == [0, 1, 2]
    assert [len(request.tool_results) for request in server.requests[:3]] == [0, 2, 3]
    if path == ANTHROPIC:
        assert server.requests[1].tool_results == ["of 0", "of 1"]
    assert text.count("finished") == 1


def test_a_retry_is_told_from_a_first_try_and_from_concurrent_conversations() -> None:
    def script(request: ModelRequest) -> Reply:
        if request.attempt:
            return Text(request.latest)
        return HttpError(429, "slow down", {"retry-after": "1"})

    with ModelServer(script) as server, ThreadPoolExecutor(16) as pool:
        for status in (429, 200):
            bodies = [request_of(ANTHROPIC, f"hello {number}") for number in range(32)]
            answers = list(pool.map(lambda body: ask(server, ANTHROPIC, body), bodies))
            assert {answer[0] for answer in answers} == {status}

    assert all(f"hello {n}" in text for n, (_, text) in enumerate(answers))


@both
def test_faults_look_like_faults_to_the_client(path: str) -> None:
    faults: dict[str, Reply] = {
        "cut": CutStream("half"),
        "drop": Drop(),
        "garbage": Garbage("nonsense"),
        "refused": HttpError(401, "bad key"),
    }
    with ModelServer(lambda request: faults[request.latest]) as server:
        bodies = {name: {**request_of(path, name), "stream": True} for name in faults}
        for broken in ("cut", "drop"):
            with pytest.raises((HTTPException, ConnectionError)):
                ask(server, path, bodies[broken])
        assert ask(server, path, bodies["garbage"]) == (200, "nonsense")
        status, text = ask(server, path, bodies["refused"])

    assert status == 401
    assert json.loads(text)["error"]["message"] == "bad key"


def test_the_end_of_the_server_ends_a_model_that_hangs_and_raises_the_scripts_error() -> None:
    def broken(request: ModelRequest) -> Reply:
        if request.latest == "hang":
            return Hang()
        raise LookupError("no such answer")

    server = ModelServer(broken)
    with ThreadPoolExecutor() as pool, pytest.raises(LookupError, match="no such answer"):
        asked(server, pool)


def asked(server: ModelServer, pool: ThreadPoolExecutor) -> None:
    with server:
        waiting = pool.submit(ask, server, ANTHROPIC, request_of(ANTHROPIC, "hang"))
        server.wait_for_requests()
        assert ask(server, ANTHROPIC, request_of(ANTHROPIC, "hello"))[0] == 500
        server.closing.set()
        assert isinstance(waiting.exception(timeout=30), HTTPException | ConnectionError)


def test_the_clis_other_requests_are_answered_without_the_script() -> None:
    title = request_of(ANTHROPIC, "<session>hello</session>")
    title["output_config"] = {"format": {"schema": {"properties": {"title": {}}}}}
    with ModelServer() as server:
        assert ask(server, "/", method="HEAD") == (200, "")
        assert ask(server, "/v1/models", method="GET")[0] == 200
        assert ask(server, OPENAI, method="GET", upgrade="websocket")[0] == 426
        assert ask(server, "/v1/messages/count_tokens", request_of(ANTHROPIC, "x"))[0] == 200
        assert "title" in ask(server, ANTHROPIC, title)[1]

    assert (server.requests, len(server.background)) == ([], 1)
    assert len(server.others) == 4
