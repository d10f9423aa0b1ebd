"""The claude_code adapter with the real `claude`: conversations at a scripted model server."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import anyio
import pytest

from skillup.engines.base import SessionRef
from skillup.engines.claude_code.engine import ClaudeCode
from skillup.schema.profile import Price, Profile
from tests.support.children import is_alive
from tests.support.held_turns import Conversation, calls, error_kind, write_skill
from tests.support.lab_engines import claude_conversation, state_of, with_variables
from tests.support.model_server import (
    Answer,
    ModelRequest,
    ModelServer,
    ReadFile,
    Reply,
    Rule,
    Shell,
    SkillCall,
    Text,
    ToolCall,
    Usage,
    WriteFile,
    by_rules,
)

pytestmark = pytest.mark.e2e
Serve = Callable[..., ModelServer]
Begin = Callable[..., Conversation]


@pytest.fixture
def begin(claude_cli: Path, tmp_path: Path) -> Begin:
    """`begin(url, **profile keys)`: a conversation with claude."""
    return partial(claude_conversation, claude_cli, tmp_path)


def test_a_conversation_of_three_turns_is_one_session_with_its_history(
    begin: Begin, model_server: Serve
) -> None:
    server = model_server(lambda request: Answer(Text(request.latest.upper())))
    conversation = begin(server.url, model="claude-sonnet-4-5")

    outcomes = [conversation.say(text) for text in ("one", "two", "three")]

    assert [outcome.response for outcome in outcomes] == ["ONE", "TWO", "THREE"]
    assert [error_kind(outcome) for outcome in outcomes] == [None, None, None]
    assert [outcome.session_verified for outcome in outcomes] == [None, True, True]
    assert {outcome.session for outcome in outcomes} == {SessionRef(conversation.trial.session_id)}
    assert [o.fingerprint.messages for o in outcomes if o.fingerprint] == [1, 2, 3]
    assert server.requests[-1].conversation == [
        ("user", "one"),
        ("assistant", "ONE"),
        ("user", "two"),
        ("assistant", "TWO"),
        ("user", "three"),
    ]
    assert {request.session_id for request in server.requests} == {conversation.trial.session_id}
    assert {request.model for request in server.requests} == {"claude-sonnet-4-5"}
    assert server.background == []


def test_a_turn_has_its_own_calls_and_tokens_only(begin: Begin, model_server: Serve) -> None:
    def script(request: ModelRequest) -> Reply:
        usage = Usage(input=100, cached=10, cache_write=5, output=7)
        if request.tool_round == 0:
            return Answer(Shell(f"echo {request.latest}"), usage=usage)
        return Answer(Text(request.tool_results[0]), usage=usage)

    conversation = begin(model_server(script).url)

    outcomes = [conversation.say(text) for text in ("one", "two", "three")]

    for outcome, word in zip(outcomes, ("one", "two", "three"), strict=True):
        assert [call.arguments["command"] for call in calls(outcome)] == [f"echo {word}"]
        assert outcome.response == word
        assert outcome.usage is not None
        assert outcome.usage.input_tokens == 2 * 115
        assert outcome.usage.cached_input_tokens == 2 * 10
        assert outcome.usage.cache_write_tokens == 2 * 5
        assert outcome.usage.output_tokens == 2 * 7
        assert outcome.usage.reasoning_tokens is None
        assert outcome.unknown_events == 0


def test_tool_calls_have_portable_kinds_and_results(begin: Begin, model_server: Serve) -> None:
    steps: list[Reply] = [
        (Text("First."), WriteFile("notes.txt", "kept\n")),
        ReadFile("notes.txt"),
        Shell("exit 3"),
        Text("Done."),
    ]
    conversation = begin(model_server(by_rules(Rule("work", steps))).url)

    outcome = conversation.say("work")

    assert [(call.name, call.kind) for call in calls(outcome)] == [
        ("Write", "write"),
        ("Read", "read"),
        ("Bash", "shell"),
    ]
    results = [item.tool_result for item in outcome.items if item.tool_result]
    assert [result.status for result in results] == ["success", "success", "error"]
    assert [result.call_id for result in results] == [call.id for call in calls(outcome)]
    assert "Exit code 3" in results[-1].content
    messages = [item.text for item in outcome.items if item.type == "message"]
    assert messages == ["First.", "Done."]
    assert outcome.response == "Done."


def test_the_users_login_file_is_used_without_a_key(begin: Begin, model_server: Serve) -> None:
    server = model_server()
    conversation = begin(server.url)
    token = "sk-ant-oat01-aaaaaaaaaaaaaaaaaaaaaaaaaaaa"
    login = conversation.trial.workspace.parent / "user-home" / ".claude" / ".credentials.json"
    login.parent.mkdir(parents=True)
    login.write_text(
        json.dumps(
            {
                "claudeAiOauth": {
                    "accessToken": token,
                    "refreshToken": "r",
                    "expiresAt": 99999999999999,
                    "scopes": ["user:inference"],
                }
            }
        )
    )
    with_variables(conversation, ANTHROPIC_API_KEY="")

    outcome = conversation.say("hello")

    assert error_kind(outcome) is None
    assert server.requests[0].headers["authorization"] == f"Bearer {token}"
    copy = state_of(conversation) / ".credentials.json"
    assert stat.S_IMODE(copy.stat().st_mode) == 0o600


def test_the_key_that_the_profile_names_is_used_and_never_written(
    begin: Begin, model_server: Serve
) -> None:
    server = model_server(by_rules(Rule("leak", [Shell('echo "$ANTHROPIC_API_KEY"'), Text("ok")])))
    conversation = begin(server.url, api_key_env="MY_KEY")
    secret = 'sk-"quoted"/0123456789'
    with_variables(conversation, MY_KEY=secret)

    outcome = conversation.say("leak")

    assert server.requests[0].headers["x-api-key"] == secret
    assert "***MY_KEY***" in str(outcome)
    assert "0123456789" not in str(outcome)
    for path in conversation.trial.raw_dir.iterdir():
        assert "0123456789" not in path.read_text()


@pytest.mark.parametrize(
    "prompt",
    [
        "/nosuch thing",
        "/exit",
        "/tmp is a directory",
        "look at @notes.txt, please",
        "@notes.txt",
        "mail a@b.example",
        " /spaced",
        "-v is a flag",
        "!ls",
        "#note",
        'quotes " and \\ and\nlines\r\nand ünïcödé \U0001f600',
    ],
)
def test_a_prompt_reaches_the_model_as_written(
    begin: Begin, model_server: Serve, prompt: str
) -> None:
    server = model_server(lambda request: Text("ok"))
    conversation = begin(server.url)
    (conversation.trial.workspace / "notes.txt").write_text("CONTENT OF THE FILE")

    first, second = conversation.say(prompt), conversation.say(prompt)

    assert (error_kind(first), error_kind(second)) == (None, None)
    assert [request.user_texts for request in server.requests] == [[prompt], [prompt, prompt]]
    assert "CONTENT OF THE FILE" not in server.requests[-1].raw_text


def test_a_prompt_of_200_kilobytes_arrives_whole(begin: Begin, model_server: Serve) -> None:
    server = model_server(lambda request: Text(str(len(request.latest))))
    prompts = ["x" * 200_000, "@" + "y" * 200_000]
    conversation = begin(server.url)

    outcomes = [conversation.say(prompt) for prompt in prompts]

    assert [outcome.response for outcome in outcomes] == ["200000", "200001"]


def test_a_slash_command_runs_a_skill_when_it_is_meant(begin: Begin, model_server: Serve) -> None:
    server = model_server(lambda request: Text("ok"))
    conversation = begin(server.url)
    skill = write_skill(conversation.trial.workspace / ".claude" / "skills")
    conversation.trial = replace(conversation.trial, skills={"greeter": skill})

    outcome = conversation.say("/greeter the king", slash_command=True)

    assert error_kind(outcome) is None
    assert "Always bow first." in server.requests[0].raw_text
    assert [(call.kind, call.arguments) for call in calls(outcome)] == [
        ("skill", {"skill": "greeter"})
    ]


def test_a_skill_of_the_workspace_is_found_and_its_use_is_seen(
    begin: Begin, model_server: Serve
) -> None:
    server = model_server(by_rules(Rule("greet", [SkillCall("greeter"), Text("Greeted.")])))
    conversation = begin(server.url)
    (folder,) = conversation.engine.skill_directories()
    write_skill(conversation.trial.workspace / folder)

    outcome = conversation.say("please greet")

    assert [(call.kind, call.arguments["skill"]) for call in calls(outcome)] == [
        ("skill", "greeter")
    ]
    assert "Always bow first." in server.requests[-1].system


@pytest.mark.parametrize(
    ("permission", "written", "ran"),
    [("full", True, True), ("edits", True, False), ("read_only", False, False)],
)
def test_the_permission_is_the_same_on_every_turn(
    begin: Begin, model_server: Serve, permission: str, written: bool, ran: bool
) -> None:
    def script(request: ModelRequest) -> Reply:
        name = request.latest
        python = f"python3 -c \"open('{name}-ran', 'w')\""
        steps: list[Reply] = [
            WriteFile(f"{name}-written", "x"),
            Shell(python),
            Shell("echo harmless"),
        ]
        return steps[request.tool_round] if request.tool_round < 3 else Text("ok")

    conversation = begin(model_server(script).url, permission=permission)
    workspace = conversation.trial.workspace

    for name in ("one", "two"):
        outcome = conversation.say(name)

        assert error_kind(outcome) is None
        assert (workspace / f"{name}-written").exists() is written
        assert (workspace / f"{name}-ran").exists() is ran
        assert [item.tool_result.content for item in outcome.items if item.tool_result][
            -1
        ] == "harmless"


def test_system_prompt_steps_and_own_prices(begin: Begin, model_server: Serve) -> None:
    usage = Usage(input=1000, cached=200, output=100)
    server = model_server(lambda request: Answer(Text("ok"), usage=usage))
    prices = Price(input=1.0, cached_input=0.5, output=2.0)
    conversation = begin(server.url, prices=prices)

    outcomes = [conversation.say(text, system="-Be terse.\nVery.") for text in ("one", "two")]

    assert all("-Be terse.\nVery." in request.system for request in server.requests)
    for outcome in outcomes:
        assert outcome.cost_usd == pytest.approx((1000 * 1.0 + 200 * 0.5 + 100 * 2.0) / 1e6)


def test_claudes_own_cost_is_that_of_the_turn(begin: Begin, model_server: Serve) -> None:
    conversation = begin(model_server().url)

    first, second = conversation.say("one"), conversation.say("two")

    assert first.cost_usd
    assert second.cost_usd == pytest.approx(first.cost_usd)


def test_tool_children_in_sessions_of_their_own_are_ended(
    begin: Begin, model_server: Serve
) -> None:
    sleeper = Shell("setsid sleep 300 > /dev/null 2>&1 & echo $! > pid; sleep 0.2")
    conversation = begin(model_server(by_rules(Rule("stay", [sleeper, Text("ok")]))).url)

    outcome = conversation.say("stay")

    assert error_kind(outcome) is None
    assert outcome.process is not None
    assert outcome.process.leftover_processes >= 1
    pid = int((conversation.trial.workspace / "pid").read_text())
    assert not is_alive(pid)


def test_a_broken_mcp_server_and_an_mcp_call(begin: Begin, model_server: Serve) -> None:
    conversation = begin(
        model_server(by_rules(Rule("call", [ToolCall("mcp__srv__add", {"a": 1}), Text("ok")]))).url
    )
    servers = '{"mcpServers": {"broken": {"command": "/nonexistent/server"}}}'
    (conversation.trial.workspace / ".mcp.json").write_text(servers)

    outcome = conversation.say("call")

    assert error_kind(outcome) is None
    assert "MCP server broken failed" in outcome.notices
    assert [(call.name, call.kind) for call in calls(outcome)] == [("srv::add", "mcp")]


def test_check_tells_version_and_login(claude_cli: Path, tmp_path: Path) -> None:
    profile = Profile(engine="claude_code", command=[str(claude_cli)])
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}

    without = anyio.run(ClaudeCode().check, profile, environment)
    with_key = anyio.run(ClaudeCode().check, profile, {**environment, "ANTHROPIC_API_KEY": "x" * 9})

    assert without.found
    assert without.version
    assert without.login is None
    assert with_key.login == "variable ANTHROPIC_API_KEY"
