"""The codex adapter with the real `codex`, against a scripted model server."""

from __future__ import annotations

import json
import os
import socket
import stat
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import anyio
import pytest

from skillup.engines.base import SessionRef, TurnRequest
from skillup.engines.codex import Codex
from skillup.engines.codex_session import session_file
from skillup.schema.profile import Price, Profile
from tests.support.held_turns import Conversation, calls, error_kind, make_trial, write_skill
from tests.support.model_server import (
    Answer,
    CutStream,
    Drop,
    Garbage,
    Hang,
    HttpError,
    McpCall,
    ModelRequest,
    ModelServer,
    ReadFile,
    Reply,
    Rule,
    Shell,
    SkillCall,
    Text,
    Usage,
    WriteFile,
    by_rules,
)

pytestmark = pytest.mark.e2e

Serve = Callable[..., ModelServer]
Begin = Callable[..., Conversation]

KEY = "sk-lab-0123456789"
NO_THREAD = "3f0e7a54-0000-4000-8000-000000000000"


@pytest.fixture
def begin(codex_cli: Path, tmp_path: Path) -> Begin:
    """`begin(url, **profile keys)`: a conversation with codex."""

    def start(url: str, **keys: object) -> Conversation:
        settings = {
            "engine": "codex",
            "command": [str(codex_cli)],
            "model": "gpt-5.5",
            "base_url": f"{url}/v1",
            "api_key_env": "LAB_KEY",
            "retries": 0,
            **keys,
        }
        trial = make_trial(tmp_path, Profile.model_validate(settings))
        trial = replace(trial, environment={**trial.environment, "LAB_KEY": KEY})
        return Conversation(Codex(), trial)

    return start


def home_of(conversation: Conversation) -> Path:
    return conversation.trial.home / "home" / ".codex"


def file_of(conversation: Conversation) -> Path:
    session = conversation.outcomes[-1].session
    assert session is not None
    path = session_file(home_of(conversation), session.id)
    assert path is not None
    return path


def test_a_conversation_of_three_turns_is_one_thread_with_its_history(
    begin: Begin, model_server: Serve
) -> None:
    server = model_server(lambda request: Answer(Text(request.latest.upper())))
    conversation = begin(server.url)

    outcomes = [conversation.say(text) for text in ("one", "two", "three")]

    assert [outcome.response for outcome in outcomes] == ["ONE", "TWO", "THREE"]
    assert [error_kind(outcome) for outcome in outcomes] == [None, None, None]
    assert [outcome.session_verified for outcome in outcomes] == [None, True, True]
    assert [o.fingerprint.messages for o in outcomes if o.fingerprint] == [1, 2, 3]
    (session,) = {outcome.session for outcome in outcomes}
    assert session is not None
    assert server.requests[-1].conversation == [
        ("user", "one"),
        ("assistant", "ONE"),
        ("user", "two"),
        ("assistant", "TWO"),
        ("user", "three"),
    ]
    assert {request.session_id for request in server.requests} == {session.id}
    assert {outcome.model for outcome in outcomes} == {"gpt-5.5"}
    assert {request.headers["authorization"] for request in server.requests} == {f"Bearer {KEY}"}


def test_each_turn_has_its_own_calls_and_tokens_although_codex_tells_the_total(
    begin: Begin, model_server: Serve
) -> None:
    def script(request: ModelRequest) -> Reply:
        usage = Usage(input=100, cached=10, cache_write=5, output=7, reasoning=3)
        if request.tool_round == 0:
            return Answer(Shell(f"echo {request.latest}"), usage=usage)
        return Answer(Text(f"said {request.latest}"), usage=usage)

    conversation = begin(model_server(script).url)

    outcomes = [conversation.say(text) for text in ("one", "two", "three")]

    for outcome, word in zip(outcomes, ("one", "two", "three"), strict=True):
        assert [call.arguments["command"] for call in calls(outcome)] == [f"echo {word}"]
        assert outcome.response == f"said {word}"
        assert outcome.usage is not None
        assert outcome.usage.model_dump() == {
            "input_tokens": 200,
            "cached_input_tokens": 20,
            "cache_write_tokens": 10,
            "output_tokens": 14,
            "reasoning_tokens": 6,
            "requests": 2,
        }
        assert outcome.cost_usd is None
        assert outcome.unknown_events == 0


def test_tool_calls_have_portable_kinds_and_results(begin: Begin, model_server: Serve) -> None:
    steps: list[Reply] = [
        (Text("First."), WriteFile("notes.txt", "kept\n")),
        ReadFile("notes.txt"),
        Shell("echo bad; exit 3"),
        Text("Done."),
    ]
    conversation = begin(model_server(by_rules(Rule("work", steps))).url)

    outcome = conversation.say("work")

    assert [(call.name, call.kind) for call in calls(outcome)] == [
        ("file_change", "write"),
        ("command_execution", "shell"),
        ("command_execution", "shell"),
    ]
    assert calls(outcome)[0].arguments == {"path": "notes.txt", "change": "add"}
    assert calls(outcome)[2].arguments == {"command": "echo bad; exit 3"}
    results = [item.tool_result for item in outcome.items if item.tool_result]
    assert [result.status for result in results] == ["success", "success", "error"]
    assert [result.call_id for result in results] == [call.id for call in calls(outcome)]
    assert results[-1].content == "bad\n"
    assert outcome.response == "Done."


@pytest.mark.parametrize("retries", [0, 1])
@pytest.mark.parametrize(
    ("reply", "kind"),
    [
        (HttpError(401, "wrong key"), "auth"),
        (HttpError(404, "no such model"), "model_error"),
        (HttpError(429, "slow down"), "rate_limit"),
        (HttpError(529, "overloaded"), "overloaded"),
        (Drop(), "network"),
    ],
    ids=str,
)
def test_a_failure_of_the_model_is_an_error_of_its_kind(
    begin: Begin, model_server: Serve, reply: Reply, kind: str, retries: int
) -> None:
    server = model_server(lambda request: reply)

    outcome = begin(server.url, retries=retries).say("hello")

    assert error_kind(outcome) == kind
    assert len(server.requests) <= 1 + retries
    assert outcome.error is not None
    assert outcome.error.evidence


@pytest.mark.parametrize(
    ("reply", "kind"),
    [
        (HttpError(400, "bad"), "model_error"),
        (HttpError(400, "unexpected status 401 in a text"), "model_error"),
        (HttpError(403, "forbidden"), "auth"),
        (HttpError(500, "boom"), "overloaded"),
        (HttpError(503, "busy"), "overloaded"),
        (CutStream(), "network"),
        (Garbage(), "network"),
        (Answer(Text("part"), stop="max_tokens"), "model_error"),
    ],
    ids=str,
)
def test_a_rarer_failure_of_the_model_has_its_kind_too(
    begin: Begin, model_server: Serve, reply: Reply, kind: str
) -> None:
    outcome = begin(model_server(lambda request: reply).url).say("hello")

    assert error_kind(outcome) == kind


@pytest.mark.parametrize("retries", [0, 1])
def test_a_refused_connection_ends_as_a_network_error(begin: Begin, retries: int) -> None:
    with socket.socket() as reserved:
        reserved.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{reserved.getsockname()[1]}"
        outcome = begin(url, retries=retries).say("hello")

    assert error_kind(outcome) == "network"


def test_a_model_that_hangs_is_a_timeout_and_the_wrapper_leaves_nothing(
    begin: Begin, model_server: Serve
) -> None:
    outcome = begin(model_server(lambda request: Hang()).url).say("hello", timeout_seconds=3)

    assert error_kind(outcome) == "timeout"
    assert outcome.process is not None
    assert outcome.process.ended_by == "timeout"
    assert not any("could not be ended" in notice for notice in outcome.notices)


def test_a_killed_codex_is_a_crash(begin: Begin, model_server: Serve) -> None:
    kill = Shell("sleep 0.3; kill -9 $PPID")
    conversation = begin(model_server(by_rules(Rule("die", [kill]))).url)

    outcome = conversation.say("die")

    assert error_kind(outcome) == "crash"


def test_a_missing_codex_says_how_to_install_it(tmp_path: Path) -> None:
    profile = Profile(engine="codex", command=["no-such-codex"])

    outcome = Conversation(Codex(), make_trial(tmp_path, profile)).say("hello")

    assert error_kind(outcome) == "engine_not_found"
    assert outcome.error is not None
    assert "npm install" in outcome.error.message


def test_a_wrong_option_makes_the_engine_unusable(begin: Begin, model_server: Serve) -> None:
    outcome = begin(model_server().url, args=["--no-such-option"]).say("hello")

    assert error_kind(outcome) == "engine_not_usable"


def test_a_thread_that_was_deleted_is_lost_and_the_agent_is_not_asked(
    begin: Begin, model_server: Serve
) -> None:
    server = model_server()
    conversation = begin(server.url)
    conversation.say("one")
    file_of(conversation).unlink()

    outcome = conversation.say("two")

    assert error_kind(outcome) == "session_lost"
    assert outcome.session_verified is False
    assert len(server.requests) == 1


def test_a_thread_that_was_changed_is_lost(begin: Begin, model_server: Serve) -> None:
    server = model_server()
    conversation = begin(server.url)
    conversation.say("My word is walrus.")
    path = file_of(conversation)
    path.write_text(path.read_text().replace("walrus", "turtle"))

    outcome = conversation.say("Which word?")

    assert error_kind(outcome) == "session_lost"
    assert len(server.requests) == 1


def test_a_thread_that_changes_during_the_turn_is_not_believed(
    begin: Begin, model_server: Serve
) -> None:
    conversation: Conversation | None = None

    def script(request: ModelRequest) -> Reply:
        if request.latest == "two" and conversation is not None:
            path = file_of(conversation)
            data = path.read_bytes()
            with path.open("r+b") as file:
                file.seek(data.index(b'"one"') + 1)
                file.write(b"eno")
        return Text("as if nothing were wrong")

    conversation = begin(model_server(script).url)
    conversation.say("one")

    outcome = conversation.say("two")

    assert error_kind(outcome) == "session_lost"
    assert outcome.session_verified is False


def test_a_thread_that_never_was_is_lost(begin: Begin, model_server: Serve) -> None:
    outcome = begin(model_server().url).resume(SessionRef(NO_THREAD), TurnRequest(2, "hello"))

    assert error_kind(outcome) == "session_lost"


def test_a_resume_that_begins_a_new_thread_is_a_mismatch(begin: Begin, model_server: Serve) -> None:
    conversation = begin(model_server().url)

    outcome = conversation.resume(SessionRef("not-a-thread"), TurnRequest(2, "hello"))

    assert error_kind(outcome) == "session_mismatch"


def test_a_first_turn_that_leaves_no_session_file_is_a_mismatch(
    begin: Begin, model_server: Serve
) -> None:
    outcome = begin(model_server().url, args=["--ephemeral"]).say("hello")

    assert error_kind(outcome) == "session_mismatch"


@pytest.mark.parametrize(
    "prompt",
    ["/nosuch thing", "look at @notes.txt", "-v", "!ls", "#note", 'a "b" \\ \n ünï \U0001f600'],
)
def test_a_prompt_reaches_the_model_as_written(
    begin: Begin, model_server: Serve, prompt: str
) -> None:
    server = model_server(lambda request: Text("ok"))
    conversation = begin(server.url)
    (conversation.trial.workspace / "notes.txt").write_text("CONTENT OF THE FILE")

    outcome = conversation.say(prompt)

    assert error_kind(outcome) is None
    assert server.requests[0].user_texts == [prompt]
    assert "CONTENT OF THE FILE" not in server.requests[0].raw_text


def test_a_prompt_of_200_kilobytes_arrives_whole(begin: Begin, model_server: Serve) -> None:
    server = model_server(lambda request: Text(str(len(request.latest))))
    conversation = begin(server.url)

    outcomes = [conversation.say("x" * 200_000), conversation.say("y" * 200_001)]

    assert [outcome.response for outcome in outcomes] == ["200000", "200001"]


def test_a_skill_of_the_workspace_is_found_and_its_use_is_seen(
    begin: Begin, model_server: Serve
) -> None:
    server = model_server(by_rules(Rule("greet", [SkillCall("greeter"), Text("Greeted.")])))
    conversation = begin(server.url)
    (folder,) = conversation.engine.skill_directories()
    skill = write_skill(conversation.trial.workspace / folder)
    conversation.trial = replace(conversation.trial, skills={"greeter": skill})

    outcome = conversation.say("please greet")

    assert [call.kind for call in calls(outcome)] == ["shell", "skill"]
    assert calls(outcome)[1].arguments == {"skill": "greeter"}
    assert "Always bow first." in server.requests[-1].tool_results[0]


def test_a_skill_that_the_prompt_names_is_seen_too(begin: Begin, model_server: Serve) -> None:
    server = model_server(lambda request: Text("ok"))
    conversation = begin(server.url)
    skill = write_skill(conversation.trial.workspace / ".agents" / "skills")
    conversation.trial = replace(conversation.trial, skills={"greeter": skill})

    outcome = conversation.say("$greeter the king")

    assert "Always bow first." in server.requests[0].raw_text
    assert [call.arguments for call in calls(outcome)] == [{"skill": "greeter"}]


@pytest.mark.parametrize(
    ("permission", "written"), [("full", True), ("edits", True), ("read_only", False)]
)
def test_the_permission_is_the_same_on_every_turn(
    begin: Begin, model_server: Serve, permission: str, written: bool
) -> None:
    def script(request: ModelRequest) -> Reply:
        name = request.latest
        steps: list[Reply] = [
            Shell("echo before"),
            Shell(f"touch {name}-ran"),
            WriteFile(f"{name}-written", "x"),
            Shell("echo after"),
        ]
        return steps[request.tool_round] if request.tool_round < len(steps) else Text("ok")

    conversation = begin(model_server(script).url, permission=permission)
    workspace = conversation.trial.workspace

    for name in ("one", "two"):
        outcome = conversation.say(name)

        assert error_kind(outcome) is None
        assert (workspace / f"{name}-written").exists() is written
        assert (workspace / f"{name}-ran").exists() is written
        # Codex itself is silent about what its sandbox refused.
        assert [(call.kind, *call.arguments.values()) for call in calls(outcome)] == [
            ("shell", "echo before"),
            ("shell", f"touch {name}-ran"),
            ("write", f"{name}-written", "add"),
            ("shell", "echo after"),
        ]
        results = {r.call_id: r.status for item in outcome.items if (r := item.tool_result)}
        statuses = [results[call.id] for call in calls(outcome)]
        assert (statuses == ["success"] * 4) is written
        assert statuses[0] == statuses[3] == "success"


def test_the_system_prompt_and_prices_of_the_profile(begin: Begin, model_server: Serve) -> None:
    usage = Usage(input=1000, cached=200, output=100)
    server = model_server(lambda request: Answer(Text("ok"), usage=usage))
    prices = {"gpt-5.5": Price(input=1.0, cached_input=0.5, output=2.0)}
    conversation = begin(server.url, prices=prices)
    system = 'Be "terse".\n\\ and \x7f ünïcödé'

    outcomes = [conversation.say(text, system=system) for text in ("one", "two")]

    assert all(system in request.system for request in server.requests)
    for outcome in outcomes:
        assert outcome.cost_usd == pytest.approx((800 * 1.0 + 200 * 0.5 + 100 * 2.0) / 1e6)


def test_the_model_is_asked_for_on_every_turn(begin: Begin, model_server: Serve) -> None:
    server = model_server()
    conversation = begin(server.url, model="gpt-5.4")

    conversation.say("one")
    conversation.say("two")

    assert [request.model for request in server.requests] == ["gpt-5.4", "gpt-5.4"]
    assert server.background == []


def test_a_limit_on_steps_is_said_not_to_apply(begin: Begin, model_server: Serve) -> None:
    outcome = begin(model_server().url).say("hello", max_steps=3)

    assert error_kind(outcome) is None
    assert any("max_turns" in notice for notice in outcome.notices)


def test_a_warning_is_a_notice_not_a_failure(begin: Begin, model_server: Serve) -> None:
    outcome = begin(model_server().url, model="no-such-model").say("hello")

    assert error_kind(outcome) is None
    assert outcome.response == "Turn 1: hello"
    assert any("no-such-model" in notice for notice in outcome.notices)


def test_tool_children_in_sessions_of_their_own_are_ended(
    begin: Begin, model_server: Serve
) -> None:
    sleeper = Shell("setsid sleep 300 > /dev/null 2>&1 & echo $! > pid; sleep 0.2")
    conversation = begin(model_server(by_rules(Rule("stay", [sleeper, Text("ok")]))).url)

    outcome = conversation.say("stay")

    assert error_kind(outcome) is None
    pid = int((conversation.trial.workspace / "pid").read_text())
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_the_key_is_never_written(begin: Begin, model_server: Serve) -> None:
    leak = Shell("cat secret.txt")
    server = model_server(by_rules(Rule("leak", [leak, lambda r: Text(r.tool_results[0])])))
    conversation = begin(server.url)
    (conversation.trial.workspace / "secret.txt").write_text(f"key={KEY}\n")

    outcome = conversation.say("leak")

    assert "***LAB_KEY***" in outcome.response
    assert KEY not in str(outcome)
    for path in conversation.trial.raw_dir.iterdir():
        assert KEY not in path.read_text()


@pytest.mark.parametrize(
    ("variables", "sent"),
    [
        ({"CODEX_API_KEY": "sk-first-0123"}, "Bearer sk-first-0123"),
        ({"OPENAI_API_KEY": "sk-other-0123"}, "Bearer sk-other-0123"),
        ({}, "Bearer sk-file-0123"),
        ({"CODEX_API_KEY": "sk-first-0123", "OPENAI_API_KEY": "x" * 9}, "Bearer sk-first-0123"),
    ],
    ids=["codex", "openai", "file", "both"],
)
@pytest.mark.parametrize("built_in", [True, False], ids=["built-in provider", "base_url"])
def test_the_ways_to_log_in(
    begin: Begin, model_server: Serve, variables: dict[str, str], sent: str, built_in: bool
) -> None:
    server = model_server()
    address = {"base_url": None, "args": ["-c", f'openai_base_url="{server.url}/v1"']}
    conversation = begin(server.url, api_key_env=None, **(address if built_in else {}))
    if not variables:
        login = conversation.trial.workspace.parent / "user-home" / ".codex" / "auth.json"
        login.parent.mkdir(parents=True)
        login.write_text(json.dumps({"OPENAI_API_KEY": "sk-file-0123", "tokens": None}))
    environment = {**conversation.trial.environment, **variables}
    conversation.trial = replace(conversation.trial, environment=environment)

    outcomes = [conversation.say("one"), conversation.say("two")]

    assert [error_kind(outcome) for outcome in outcomes] == [None, None]
    assert {request.headers.get("authorization") for request in server.requests} == {sent}
    if not variables:
        copy = home_of(conversation) / "auth.json"
        assert stat.S_IMODE(copy.stat().st_mode) == 0o600


def test_an_mcp_call_is_named_by_server_and_tool(
    begin: Begin, model_server: Serve, tmp_path: Path
) -> None:
    program = tmp_path / "server.py"
    program.write_text(MCP_SERVER)
    servers = ["-c", 'mcp_servers.tiny.command="python3"']
    servers += ["-c", f'mcp_servers.tiny.args=["{program}"]']
    steps: list[Reply] = [McpCall("tiny", "add", {"a": 2, "b": 3}), Text("ok")]
    conversation = begin(model_server(by_rules(Rule("add", steps))).url, args=servers)

    outcome = conversation.say("add")

    assert [(c.name, c.kind, c.arguments) for c in calls(outcome)] == [
        ("tiny::add", "mcp", {"a": 2, "b": 3})
    ]
    results = [item.tool_result for item in outcome.items if item.tool_result]
    assert [(result.status, result.content) for result in results] == [("success", "5")]


def test_check_tells_version_and_login(codex_cli: Path, tmp_path: Path) -> None:
    profile = Profile(engine="codex", command=[str(codex_cli)])
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}

    without = anyio.run(Codex().check, profile, environment)
    with_key = anyio.run(Codex().check, profile, {**environment, "CODEX_API_KEY": "x" * 9})

    assert without.found
    assert without.version
    assert without.login is None
    assert without.notes
    assert with_key.login == "variable CODEX_API_KEY"


MCP_SERVER = """
import json, sys

TOOL = {
    "name": "add",
    "description": "Adds two numbers",
    "inputSchema": {
        "type": "object",
        "properties": {"a": {"type": "number"}, "b": {"type": "number"}},
    },
    "annotations": {"readOnlyHint": True},
}

def answer(method, params):
    if method == "initialize":
        info = {"name": "tiny", "version": "1"}
        version = params["protocolVersion"]
        return {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": info}
    if method == "tools/list":
        return {"tools": [TOOL]}
    if method == "tools/call":
        arguments = params["arguments"]
        return {"content": [{"type": "text", "text": str(arguments["a"] + arguments["b"])}]}
    return {}

for line in sys.stdin:
    request = json.loads(line)
    if "id" in request:
        result = answer(request["method"], request.get("params") or {})
        print(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result}), flush=True)
"""
