"""The claude_code adapter with the real `claude`, against a scripted model server."""

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
from skillup.engines.claude_code import ClaudeCode
from skillup.engines.claude_session import session_file
from skillup.schema.profile import Price, Profile
from tests.support.held_turns import Conversation, calls, error_kind, make_trial, write_skill
from tests.support.model_server import (
    Answer,
    CutStream,
    Drop,
    Hang,
    HttpError,
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

KEY = "sk-ant-lab-0123456789"


@pytest.fixture
def begin(claude_cli: Path, tmp_path: Path) -> Begin:
    """`begin(url, **profile keys)`: a conversation with claude."""

    def start(url: str, **keys: object) -> Conversation:
        settings = {
            "engine": "claude_code",
            "command": [str(claude_cli)],
            "base_url": url,
            "retries": 0,
            **keys,
        }
        trial = make_trial(tmp_path, Profile.model_validate(settings))
        trial = replace(trial, environment={**trial.environment, "ANTHROPIC_API_KEY": KEY})
        return Conversation(ClaudeCode(), trial)

    return start


def home_of(conversation: Conversation) -> Path:
    return conversation.trial.home / "home" / ".claude"


def file_of(conversation: Conversation) -> Path:
    path = session_file(home_of(conversation), conversation.trial.session_id)
    assert path is not None
    return path


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


@pytest.mark.parametrize(
    ("reply", "kind"),
    [
        (HttpError(401, "wrong key"), "auth"),
        (HttpError(403, "forbidden"), "auth"),
        (HttpError(404, "no such model"), "model_error"),
        (HttpError(400, "bad"), "model_error"),
        (HttpError(429, "slow down"), "rate_limit"),
        (HttpError(500, "boom"), "model_error"),
        (HttpError(503, "busy"), "overloaded"),
        (HttpError(529, "overloaded"), "overloaded"),
        (Drop(), "network"),
        (Answer(Text("part"), stop="max_tokens"), "model_error"),
    ],
    ids=str,
)
def test_a_failure_of_the_model_is_an_error_of_its_kind(
    begin: Begin, model_server: Serve, reply: Reply, kind: str
) -> None:
    conversation = begin(model_server(lambda request: reply).url)

    outcome = conversation.say("hello")

    assert error_kind(outcome) == kind
    assert outcome.error is not None
    assert outcome.error.evidence


def test_a_stream_that_breaks_off_is_asked_for_again_and_counted(
    begin: Begin, model_server: Serve
) -> None:
    outcome = begin(model_server(lambda request: CutStream("whole")).url).say("hello")

    assert error_kind(outcome) is None
    assert outcome.response == "whole"
    assert outcome.usage is not None
    assert outcome.usage.output_tokens


def test_a_refused_connection_is_a_network_error(begin: Begin) -> None:
    with socket.socket() as reserved:
        reserved.bind(("127.0.0.1", 0))
        outcome = begin(f"http://127.0.0.1:{reserved.getsockname()[1]}").say("hello")

    assert error_kind(outcome) == "network"


def test_the_profile_bounds_the_retries(begin: Begin, model_server: Serve) -> None:
    server = model_server(lambda request: HttpError(500, "boom"))

    outcome = begin(server.url, retries=1).say("hello")

    assert error_kind(outcome) == "model_error"
    assert len(server.requests) == 2


def test_a_model_that_hangs_is_a_timeout(begin: Begin, model_server: Serve) -> None:
    outcome = begin(model_server(lambda request: Hang()).url).say("hello", timeout_seconds=3)

    assert error_kind(outcome) == "timeout"
    assert outcome.process is not None
    assert outcome.process.ended_by == "timeout"


def test_a_killed_claude_is_a_crash(begin: Begin, model_server: Serve) -> None:
    kill = Shell("sleep 0.3; kill -9 $PPID")
    conversation = begin(model_server(by_rules(Rule("die", [kill]))).url)

    outcome = conversation.say("die")

    assert error_kind(outcome) == "crash"
    assert outcome.process is not None
    assert outcome.process.signal == 9


def test_an_interrupted_claude_is_no_completed_turn(begin: Begin, model_server: Serve) -> None:
    """SIGINT while it waits for the model: exit code 0 and no `result`."""
    server = model_server(lambda request: Hang(20))
    conversation = begin(server.url)
    command = conversation.trial.profile.command or []
    wrapper = conversation.trial.home.parent / "interrupted-claude"
    wrapper.write_text(
        f'#!/bin/sh\n"{command[0]}" "$@" &\npid=$!\n'
        'sleep 4\nkill -INT "$pid"\nwait "$pid"\nexit 0\n'
    )
    wrapper.chmod(0o755)
    profile = conversation.trial.profile.model_copy(update={"command": [str(wrapper)]})
    conversation.trial = replace(conversation.trial, profile=profile)

    outcome = conversation.say("hello")

    assert error_kind(outcome) == "protocol"


def test_without_a_login_the_error_says_how_to_log_in(begin: Begin, model_server: Serve) -> None:
    conversation = begin(model_server().url)
    environment = {**conversation.trial.environment, "ANTHROPIC_API_KEY": ""}
    conversation.trial = replace(conversation.trial, environment=environment)

    outcome = conversation.say("hello")

    assert error_kind(outcome) == "auth"
    assert outcome.error is not None
    assert "ANTHROPIC_API_KEY" in outcome.error.message


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
    environment = {**conversation.trial.environment, "ANTHROPIC_API_KEY": ""}
    conversation.trial = replace(conversation.trial, environment=environment)

    outcome = conversation.say("hello")

    assert error_kind(outcome) is None
    assert server.requests[0].headers["authorization"] == f"Bearer {token}"
    copy = home_of(conversation) / ".credentials.json"
    assert stat.S_IMODE(copy.stat().st_mode) == 0o600


def test_the_key_that_the_profile_names_is_used_and_never_written(
    begin: Begin, model_server: Serve
) -> None:
    server = model_server(by_rules(Rule("leak", [Shell('echo "$ANTHROPIC_API_KEY"'), Text("ok")])))
    conversation = begin(server.url, api_key_env="MY_KEY")
    secret = 'sk-"quoted"/0123456789'
    environment = {**conversation.trial.environment, "MY_KEY": secret}
    conversation.trial = replace(conversation.trial, environment=environment)

    outcome = conversation.say("leak")

    assert server.requests[0].headers["x-api-key"] == secret
    assert "***MY_KEY***" in str(outcome)
    assert "0123456789" not in str(outcome)
    for path in conversation.trial.raw_dir.iterdir():
        assert "0123456789" not in path.read_text()


def test_a_named_key_that_is_not_set_is_an_error_before_anything_runs(
    begin: Begin, model_server: Serve
) -> None:
    server = model_server()

    outcome = begin(server.url, api_key_env="NOT_SET_AT_ALL").say("hello")

    assert error_kind(outcome) == "auth"
    assert outcome.error is not None
    assert "NOT_SET_AT_ALL" in outcome.error.message
    assert server.requests == []


def test_a_missing_claude_says_how_to_install_it(tmp_path: Path) -> None:
    profile = Profile(engine="claude_code", command=["no-such-claude"])

    outcome = Conversation(ClaudeCode(), make_trial(tmp_path, profile)).say("hello")

    assert error_kind(outcome) == "engine_not_found"
    assert outcome.error is not None
    assert "npm install" in outcome.error.message


def test_a_wrong_option_makes_the_engine_unusable(begin: Begin, model_server: Serve) -> None:
    outcome = begin(model_server().url, args=["--no-such-option"]).say("hello")

    assert error_kind(outcome) == "engine_not_usable"


def test_a_session_that_was_deleted_is_lost_and_the_agent_is_not_asked(
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


def test_a_session_that_was_changed_is_lost(begin: Begin, model_server: Serve) -> None:
    server = model_server()
    conversation = begin(server.url)
    conversation.say("My word is walrus.")
    path = file_of(conversation)
    path.write_text(path.read_text().replace("walrus", "turtle"))

    outcome = conversation.say("Which word?")

    assert error_kind(outcome) == "session_lost"
    assert len(server.requests) == 1


def test_a_session_that_changes_during_the_turn_is_not_believed(
    begin: Begin, model_server: Serve
) -> None:
    conversation: Conversation | None = None

    def script(request: ModelRequest) -> Reply:
        if request.latest == "two" and conversation is not None:
            path = file_of(conversation)
            path.write_text(path.read_text().replace("one", "eno"))
        return Text("as if nothing were wrong")

    conversation = begin(model_server(script).url)
    conversation.say("one")

    outcome = conversation.say("two")

    assert error_kind(outcome) == "session_lost"
    assert outcome.session_verified is False


def test_a_session_that_never_was_is_lost(begin: Begin, model_server: Serve) -> None:
    conversation = begin(model_server().url)
    turn = TurnRequest(2, "hello")

    outcome = conversation.resume(SessionRef("3f0e7a54-0000-4000-8000-000000000000"), turn)

    assert error_kind(outcome) == "session_lost"


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


def test_an_unknown_slash_command_is_an_error_not_an_answer(
    begin: Begin, model_server: Serve
) -> None:
    server = model_server()

    outcome = begin(server.url).say("/nosuch thing", slash_command=True)

    assert error_kind(outcome) == "unsupported"
    assert server.requests == []


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


def test_too_many_steps_are_an_error(begin: Begin, model_server: Serve) -> None:
    server = model_server(by_rules(Rule("work", [Shell("echo 1")] * 5)))

    outcome = begin(server.url).say("work", max_steps=2)

    assert error_kind(outcome) == "max_turns"


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
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


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
