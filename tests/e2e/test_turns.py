"""Turns of both adapters with the real CLIs, against a scripted model server."""

from __future__ import annotations

import json
import os
import stat
from dataclasses import replace
from pathlib import Path

import anyio
import pytest

from skillup.schema.profile import Price
from tests.e2e.conftest import Begin, Serve, state_of, with_variables
from tests.support.children import is_alive
from tests.support.engine_turns import calls, error_kind, raw_streams, write_skill
from tests.support.model_server import (
    Answer,
    McpCall,
    ModelRequest,
    Reply,
    Rule,
    Script,
    Shell,
    Text,
    ToolCall,
    Usage,
    WriteFile,
    by_rules,
)

pytestmark = pytest.mark.e2e
only_claude = pytest.mark.parametrize("engine", ["claude"])
only_codex = pytest.mark.parametrize("engine", ["codex"])
MODELS = {"claude": "claude-sonnet-4-5", "codex": "gpt-5.4"}
# Claude counts what it reads from the cache, and writes there, apart.
TOKENS: dict[str, dict[str, int | None]] = {
    "claude": {"input_tokens": 1205, "reasoning_tokens": None},
    "codex": {"input_tokens": 1000, "reasoning_tokens": 3},
}


def test_failed_calls_and_calls_of_mcp_servers_have_results_and_what_they_leave_is_ended(
    begin: Begin, model_server: Serve, engine: str
) -> None:
    is_claude = engine == "claude"
    add: Reply = (
        ToolCall("mcp__srv__add", {"a": 1})
        if is_claude
        else McpCall("tiny", "add", {"a": 2, "b": 3})
    )
    steps: list[Reply] = [
        (Text("First."), Shell("echo bad; exit 3")),
        add,
        Shell("setsid sleep 300 > /dev/null 2>&1 & echo $! > pid; sleep 0.2"),
        Text("Done."),
    ]
    program = Path(__file__).parents[1] / "support" / "tiny_mcp_server.py"
    tiny = ["-c", 'mcp_servers.tiny.command="python3"']
    tiny += ["-c", f'mcp_servers.tiny.args=["{program}"]']
    server = model_server(by_rules(Rule("work", steps)))
    conversation = begin(server.url, args=[] if is_claude else tiny)
    workspace = conversation.trial.workspace
    broken = '{"mcpServers": {"broken": {"command": "/nonexistent/server"}}}'
    (workspace / ".mcp.json").write_text(broken)

    outcome = conversation.say("work")

    assert error_kind(outcome) is None
    shell, mcp = ("Bash", "srv::add") if is_claude else ("command_execution", "tiny::add")
    made = [(call.name, call.kind) for call in calls(outcome)]
    assert made == [(shell, "shell"), (mcp, "mcp"), (shell, "shell")]
    results = [item.tool_result for item in outcome.items if item.tool_result]
    assert [result.call_id for result in results] == [call.id for call in calls(outcome)]
    assert results[0].status == "error"
    assert "bad" in results[0].content
    messages = [item.text for item in outcome.items if item.type == "message"]
    assert messages == ["First.", "Done."]
    if is_claude:
        assert "MCP server broken failed" in outcome.notices
    else:
        assert (results[1].status, results[1].content) == ("success", "5")
    assert not is_alive(int((workspace / "pid").read_text()))


def test_prompts_like_commands_reach_models(begin: Begin, model_server: Serve, engine: str) -> None:
    server = model_server(lambda request: Text("ok"))
    conversation, prompts = begin(server.url), ["!ls", *["/exit"] * (engine == "claude")]
    assert {error_kind(conversation.say(prompt)) for prompt in prompts} == {None}
    assert server.requests[-1].user_texts == prompts


def test_a_skill_that_prompts_name_is_used(begin: Begin, model_server: Serve, engine: str) -> None:
    """Claude: `/name`, codex: `$name`."""
    conversation = begin(model_server().url)
    (folder,) = conversation.engine.skill_directories()
    skill = write_skill(conversation.trial.workspace / folder)
    conversation.trial = replace(conversation.trial, skills={"greeter": skill})
    prompt = {"claude": "/greeter the king", "codex": "$greeter the king"}[engine]

    named = conversation.say(prompt, slash_command=engine == "claude")

    assert error_kind(named) is None
    assert [call.arguments for call in calls(named)] == [{"skill": "greeter"}]


@pytest.mark.parametrize(("engine", "ran"), [("claude", False), ("codex", True)])
def test_with_edits_its_tools_write_files_and_the_sandbox_holds_commands_on_every_turn(
    begin: Begin, model_server: Serve, ran: bool
) -> None:
    """`read_only`: the conformance."""

    def script(request: ModelRequest) -> Reply:
        name = request.latest
        steps: list[Reply] = [
            Shell(f"python3 -c \"open('{name}-ran', 'w')\""),
            WriteFile(f"{name}-written", "x"),
            Shell("echo after"),
        ]
        return steps[request.tool_round] if request.tool_round < len(steps) else Text("ok")

    conversation = begin(model_server(script).url, permission="edits")
    workspace = conversation.trial.workspace

    for name in ("one", "two"):
        outcome = conversation.say(name)

        assert error_kind(outcome) is None
        assert (workspace / f"{name}-written").exists()
        assert (workspace / f"{name}-ran").exists() is ran
        results = {r.call_id: r.status for item in outcome.items if (r := item.tool_result)}
        statuses = [(call.kind, results[call.id]) for call in calls(outcome)]
        tried = ("shell", "success" if ran else "error")
        assert statuses == [tried, ("write", "success"), ("shell", "success")]


@only_codex
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
    assert Path(temporary) == conversation.trial.home.with_name("tmp"), "the trial's own"


def test_the_profiles_model_and_prices_the_system_prompt_and_each_turns_own_tokens(
    begin: Begin, model_server: Serve, engine: str
) -> None:
    thoughts = {"reasoning": 3} if engine == "codex" else {}
    usage = Usage(input=1000, cached=200, cache_write=5, output=100, **thoughts)
    server = model_server(lambda request: Answer(Text("ok"), usage=usage))
    prices = {"": Price(input=1.0, cached_input=0.5, cache_write=1.0, output=2.0)}
    conversation = begin(server.url, model=MODELS[engine], prices=prices)
    system = '-Be "terse".\n\\ and ünïcödé'

    outcomes = [conversation.say(text, system=system, max_steps=3) for text in ("one", "two")]

    assert all(system in request.system for request in server.requests)
    assert {request.model for request in server.requests} == {MODELS[engine]}
    assert {request.session_id for request in server.requests} == {outcomes[1].session}
    for outcome in outcomes:
        assert outcome.usage is not None
        assert outcome.usage.model_dump(exclude={"requests"}) == {
            "cached_input_tokens": 200,
            "cache_write_tokens": 5,
            "output_tokens": 100,
            **TOKENS[engine],
        }
        uncached = {"claude": 1005, "codex": 800}[engine]
        assert outcome.cost_usd == pytest.approx((uncached * 1.0 + 200 * 0.5 + 100 * 2.0) / 1e6)
        ignored = any("max_turns" in notice for notice in outcome.notices)
        assert ignored is (engine == "codex")


@only_claude
def test_the_cost_that_claude_tells_is_the_turns_own(begin: Begin, model_server: Serve) -> None:
    conversation = begin(model_server(lambda _: Text("ok")).url, model=MODELS["claude"])
    first, second = (conversation.say(text).cost_usd for text in ("one", "two"))
    assert first is not None
    assert second == pytest.approx(first)


def test_the_key_that_the_profile_names_is_used_and_never_written(
    begin: Begin, model_server: Serve, engine: str
) -> None:
    def repeated(request: ModelRequest) -> Reply:
        return Text(request.tool_results[0])

    leak: list[Reply | Script] = [Shell("cat secret.txt"), repeated]
    server = model_server(by_rules(Rule("leak", leak)))
    conversation = begin(server.url, api_key_env="MY_KEY")
    secret = 'sk-"quoted"/0123456789'
    with_variables(conversation, MY_KEY=secret)
    (conversation.trial.workspace / "secret.txt").write_text(f"key={secret}\n")

    outcome = conversation.say("leak")

    headers = server.requests[0].headers
    assert headers[{"claude": "x-api-key", "codex": "authorization"}[engine]].endswith(secret)
    assert "***MY_KEY***" in outcome.response
    assert "0123456789" not in str(outcome)
    for text in raw_streams(conversation.trial).values():
        assert "0123456789" not in text


@only_claude
def test_claudes_login_file_is_used_without_a_key(begin: Begin, model_server: Serve) -> None:
    server = model_server()
    conversation = begin(server.url)
    token = "sk-ant-oat01-aaaaaaaaaaaaaaaaaaaaaaaaaaaa"
    login = {"accessToken": token, "refreshToken": "r", "expiresAt": 99999999999999}
    path = conversation.trial.workspace.parent / "user-home" / ".claude" / ".credentials.json"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps({"claudeAiOauth": {**login, "scopes": ["user:inference"]}}))
    with_variables(conversation, ANTHROPIC_API_KEY="")

    outcome = conversation.say("hello")

    assert error_kind(outcome) is None
    assert server.requests[0].headers["authorization"] == f"Bearer {token}"
    assert stat.S_IMODE((state_of(conversation) / ".credentials.json").stat().st_mode) == 0o600


@only_codex
@pytest.mark.parametrize(
    ("built_in", "variables", "sent"),
    [
        (True, {}, "Bearer sk-file-0123"),
        (True, {"OPENAI_API_KEY": "sk-other-0123"}, "Bearer sk-other-0123"),
        (
            False,
            {"CODEX_API_KEY": "sk-first-0123", "OPENAI_API_KEY": "x" * 9},
            "Bearer sk-first-0123",
        ),
        (False, {}, None),
    ],
    ids=["file", "openai", "both", "file and base_url"],
)
def test_codexs_ways_to_log_in(
    begin: Begin, model_server: Serve, built_in: bool, variables: dict[str, str], sent: str | None
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
    assert {request.headers.get("authorization") for request in server.requests} == {sent}
    if not variables:
        assert stat.S_IMODE((state_of(conversation) / "auth.json").stat().st_mode) == 0o600


def test_check_tells_version_and_login(begin: Begin, engine: str, tmp_path: Path) -> None:
    conversation = begin("http://127.0.0.1:1", api_key_env=None)
    profile = conversation.trial.profile.model_copy(update={"base_url": None})
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}
    key = {"claude": "ANTHROPIC_API_KEY", "codex": "CODEX_API_KEY"}[engine]

    without = anyio.run(conversation.engine.check, profile, environment)
    with_key = anyio.run(conversation.engine.check, profile, {**environment, key: "x" * 9})

    assert without.found
    assert without.version
    assert without.login is None
    assert with_key.login == f"variable {key}"
