"""Both real CLIs behind the gateway: the key stays outside, and what passes is counted."""

from __future__ import annotations

import json
from dataclasses import replace

import anyio
import pytest

from skillup.engines.base import TurnRequest
from skillup.engines.codex.engine import Codex
from skillup.gateway.server import open_gateway
from skillup.history.runs import read_run
from tests.e2e.conftest import Begin, Lab, Serve, both_sessions, with_variables
from tests.support.model_server import Drop, HttpError, ModelRequest, Reply, Shell, Text

pytestmark = pytest.mark.e2e

CANARY = "sk-canary-7d1f20c4e8aa4b"
KEYS = {"ANTHROPIC_API_KEY": CANARY, "LAB_KEY": CANARY, "SKILLUP_TRUST": "1"}
KEYS["ANTHROPIC_CUSTOM_HEADERS"] = f"X-Of-Proxy: {CANARY}"
# All that an agent of the user's own can look into for a key: itself, its parents, its files.
LOOK = (
    "env; cat /proc/$PPID/environ /proc/$PPID/cmdline | tr '\\0' '\\n';"
    " grep -r canary- $HOME . ; echo looked"
)
CASE = """
    input: {turns: [look for it, and then, once more]}
    assertions: [{contains: once more}]
    """


def look(request: ModelRequest) -> Reply:
    if request.latest == "look for it" and not request.tool_results:
        return Shell(LOOK)
    return Text(f"after {request.user_texts}")


@both_sessions
def test_no_agent_sees_the_key_and_turns_are_counted_as_by_models(lab: Lab, session: str) -> None:
    project, server = lab(look, {"cases/a.yaml": CASE}, f"session: {session}\n")
    more = ("-e", "claude", "-e", "codex", "--keep-traffic", "--keep-workspaces")
    result = project.run_json("cases", *more, env=KEYS)
    assert [case["status"] for case in result["cases"]] == ["PASS"] * 2, result["cases"]
    for engine in ("claude", "codex"):
        turns = project.record(f"a/{engine}/with_skill/1")["turns"]
        seen = next(i["tool_result"]["content"] for i in turns[0]["transcript"] if i["tool_result"])
        assert "looked" in seen
        assert "canary" not in seen.replace("grep -r canary-", "")
        assert "***" in seen or "skillup-" in seen, "what stands for the key was there"
        assert [turn["traffic"]["requests"] for turn in turns] == [2, 1, 1]
        assert [turn["traffic"]["continued"] for turn in turns] == [True] * 3
        assert not any(turn["traffic"]["usage_differs"] or turn["notes"] for turn in turns)
        for turn in turns:
            both = turn["traffic"]["usage"], turn["usage"]
            assert len({(told["input_tokens"], told["output_tokens"]) for told in both}) == 1
    keys = {r.headers.get("x-api-key", "") or r.headers["authorization"] for r in server.requests}
    assert keys == {CANARY, f"Bearer {CANARY}"}
    assert {r.headers.get("x-of-proxy") for r in server.requests} == {CANARY, None}
    about = read_run(project.latest_run()).about  # what nights are compared by
    asked = {"claude": set[str](), "codex": set[str]()}
    for r in server.requests:
        asked["codex" if r.api == "openai" else "claude"].add(r.model)
    assert {e: {m.partition("[")[0]} for e, m in about.models.items()} == asked
    assert about.cli_versions.keys() == asked.keys()
    found = [path for path in project.root.rglob("*") if path.is_file()]
    assert not [path for path in found if CANARY.encode() in path.read_bytes()]
    project.run("export", str(project.latest_run()), "--format", "files", "--out", "files")
    for engine, api in (("claude", "/v1/messages?beta=true"), ("codex", "/responses")):
        raw = project.root / f"files/trials/a/{engine}/with_skill/1/raw/turn-02.http.jsonl"
        (line,) = map(json.loads, raw.read_bytes().splitlines())
        assert (line["path"], line["status"]) == (api, 200)
        assert "and then" in line["request"]
        assert "after [" in line["answer"]


def test_a_key_of_the_profiles_own_outranks_it_and_off_means_off(lab: Lab, engine: str) -> None:
    case = "input: {turns: [hello]}\nassertions: [{contains: hello}]\n"
    project, server = lab(look, {"cases/a.yaml": case})
    profile = (project.root / f"engines/{engine}.yaml").read_text()
    own = "env: {ANTHROPIC_API_KEY: '${OTHER}', LAB_KEY: '${OTHER}', "
    project.write({"engines/own.yaml": profile.replace("env: {", own)})
    project.write({"engines/direct.yaml": profile + "gateway: off\n"})
    project.write({"engines/mine.yaml": profile + "isolation: shared\n"})
    for name in ("own", "direct", "mine"):
        project.run_json("cases", "-e", name, env={**KEYS, "OTHER": "sk-of-the-profile"})
        (turn,) = project.record(f"a/{name}/with_skill/1")["turns"]
        assert (turn["traffic"] is None) is (name != "own")
        if name == "own":
            keys = {
                r.headers.get("x-api-key") or r.headers["authorization"] for r in server.requests
            }
            assert keys <= {"sk-of-the-profile", "Bearer sk-of-the-profile"}


WAIT = {"retry-after": "23"}
FAULTS = {
    "limited": (HttpError(429, "slow down", WAIT), "rate_limit", 23),
    "overloaded": (HttpError(529, "busy", WAIT), "overloaded", 23),
    "dropped": (Drop(), "network", None),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_failure_of_the_model_stays_what_it_is_and_waits_are_read_from_headers(
    lab: Lab, engine: str, name: str
) -> None:
    reply, kind, wait = FAULTS[name]
    case = "input: {turns: [hello]}\nassertions: [{contains: x}]\n"
    project, _ = lab(lambda _: reply, {"cases/a.yaml": case})
    more = ("-e", engine, "--rate-limit-wait", "0s")
    (found,) = project.run_json("cases", *more, env=KEYS)["cases"]
    assert (found["status"], found["error"]["kind"]) == ("ERROR", kind), found["error"]
    (turn,) = project.record(f"a/{engine}/with_skill/1")["turns"]
    assert turn["error"]["retry_after_seconds"] == wait
    refused = [(one["status"], one["retry_after_seconds"]) for one in turn["traffic"]["refused"]]
    assert set(refused) == ({(reply.status, wait)} if isinstance(reply, HttpError) else set())
    if isinstance(reply, Drop):
        assert "Server disconnected" in turn["error"]["evidence"]


@pytest.mark.parametrize("engine", ["codex"])
def test_codex_asks_openai_through_it_as_it_does_without(begin: Begin, model_server: Serve) -> None:
    """With the provider that it has for OpenAI, which asks for a WebSocket first."""
    server = model_server(look)
    conversation = begin(server.url, base_url=None, api_key_env=None)
    with_variables(conversation, LAB_KEY="", CODEX_API_KEY="sk-other-0123456789")

    async def turn() -> None:
        async with open_gateway({}) as gateway:
            trial, engine = conversation.trial, Codex()
            address, _ = engine.model_address(trial) or ("", ())
            assert address == "https://api.openai.com/v1"
            trial = replace(trial, gateway=gateway.route(f"{server.url}/v1"))
            outcome = await engine.start(TurnRequest(1, "hello", timeout_seconds=60), trial)
            assert (outcome.error, outcome.response) == (None, "after ['hello']")
            assert list(outcome.notices) == []

    anyio.run(turn)
    assert [r.headers["authorization"] for r in server.requests] == ["Bearer sk-other-0123456789"]
