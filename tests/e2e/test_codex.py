"""The codex adapter with the real `codex`: conversations at a scripted model server."""

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

from skillup.checks import evaluate
from skillup.engines.codex.engine import Codex
from skillup.schema.checks import Check
from skillup.schema.profile import Price, Profile
from tests.support.children import is_alive
from tests.support.held_turns import Conversation, calls, error_kind, write_skill
from tests.support.lab_engines import KEY, codex_conversation, state_of, with_variables
from tests.support.model_server import (
    Answer,
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
from tests.support.records import file_states, make_record, make_turn

pytestmark = pytest.mark.e2e
Serve = Callable[..., ModelServer]
Begin = Callable[..., Conversation]
NO_THREAD = "3f0e7a54-0000-4000-8000-000000000000"


@pytest.fixture
def begin(codex_cli: Path, tmp_path: Path) -> Begin:
    """`begin(url, **profile keys)`: a conversation with codex."""
    return partial(codex_conversation, codex_cli, tmp_path)


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

    assert [call.kind for call in calls(outcome)] == ["shell"]
    file = {".agents/skills/greeter/SKILL.md": (skill / "SKILL.md").read_text()}
    turn = make_turn(outcome.response, transcript=list(outcome.items))
    recorded = make_record(turn, initial_files=file_states(file))
    assert evaluate(Check(skill_used="greeter"), recorded.context()).passed
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


@pytest.mark.parametrize("isolation", ["clean", "shared"])
def test_with_edits_its_tools_reach_neither_other_trials_nor_its_own_settings(
    begin: Begin, model_server: Serve, tmp_path: Path, isolation: str
) -> None:
    """S1: by default codex's sandbox leaves temporary directories writable, where they lie."""
    siblings = tmp_path / "another-trial"
    siblings.mkdir()
    server = model_server(by_rules(Rule("work", [Shell("sh ./work.sh"), Text("Done.")])))
    conversation = begin(server.url, permission="edits", isolation=isolation)
    # As with a user whose temporary directory is the one that trials work in.
    conversation = with_variables(conversation, TMPDIR=str(tmp_path))
    (conversation.trial.workspace / "work.sh").write_text(
        f"echo x > {siblings}/answer\n"
        "home=${CODEX_HOME:-$HOME/.codex}; echo 'notify=[]' >> $home/config.toml\n"
        "echo x > inside && echo x > $TMPDIR/own && echo $TMPDIR $home > homes\n"
    )

    outcome = conversation.say("work")

    temporary, home = (conversation.trial.workspace / "homes").read_text().split(" ", 1)
    assert error_kind(outcome) is None
    assert list(siblings.iterdir()) == []
    assert not Path(home.strip(), "config.toml").exists()
    assert Path(temporary, "own").exists()
    assert Path(temporary).is_relative_to(conversation.trial.home)


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


def test_tool_children_in_sessions_of_their_own_are_ended(
    begin: Begin, model_server: Serve
) -> None:
    sleeper = Shell("setsid sleep 300 > /dev/null 2>&1 & echo $! > pid; sleep 0.2")
    conversation = begin(model_server(by_rules(Rule("stay", [sleeper, Text("ok")]))).url)

    outcome = conversation.say("stay")

    assert error_kind(outcome) is None
    pid = int((conversation.trial.workspace / "pid").read_text())
    assert not is_alive(pid)


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
    """The login file is for OpenAI: its key is not sent to an address of the profile."""
    server = model_server()
    address = {"base_url": None, "args": ["-c", f'openai_base_url="{server.url}/v1"']}
    conversation = begin(server.url, api_key_env=None, **(address if built_in else {}))
    if not variables:
        login = conversation.trial.workspace.parent / "user-home" / ".codex" / "auth.json"
        login.parent.mkdir(parents=True)
        login.write_text(json.dumps({"OPENAI_API_KEY": "sk-file-0123", "tokens": None}))
    with_variables(conversation, **variables)

    outcomes = [conversation.say("one"), conversation.say("two")]

    assert [error_kind(outcome) for outcome in outcomes] == [None, None]
    expected = sent if built_in or variables else None
    assert {request.headers.get("authorization") for request in server.requests} == {expected}
    if not variables:
        copy = state_of(conversation) / "auth.json"
        assert stat.S_IMODE(copy.stat().st_mode) == 0o600


def test_an_mcp_call_is_named_by_server_and_tool(begin: Begin, model_server: Serve) -> None:
    program = Path(__file__).parents[1] / "support" / "tiny_mcp_server.py"
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
    elsewhere = profile.model_copy(update={"base_url": "http://127.0.0.1:1/v1"})
    without_key = anyio.run(Codex().check, elsewhere, environment)
    assert (without_key.login, without_key.notes) == ("no key", ())
