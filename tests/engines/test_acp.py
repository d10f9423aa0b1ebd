"""The `acp` engine, with a small agent that also does what real ones cannot be made to do."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest

from skillup.engines.base import TurnRequest
from skillup.engines.registry import get_engine
from skillup.gateway.server import open_gateway
from skillup.process.tree import read_row, running_trees
from skillup.schema.profile import Profile
from skillup.trial.session import compared
from tests.support.engine_turns import Conversation, calls, error_kind, make_trial, raw_streams
from tests.support.model_server import Drop, HttpError, ModelRequest, ModelServer, Reply, Text
from tests.support.project import Project

Begin = Callable[..., Conversation]
AGENT = Path(__file__).parents[1] / "support" / "acp_agent.py"
both_sessions = pytest.mark.parametrize("session", ["resume", "live"])


@pytest.fixture
def begin(tmp_path: Path) -> Iterator[Begin]:
    conversations: list[Conversation] = []

    def start(quirks: str = "", **keys: Any) -> Conversation:
        env = {"QUIRKS": quirks, **keys.pop("env", {})}
        given = {"engine": "acp", "command": [sys.executable, str(AGENT)], "env": env, **keys}
        profile = Profile.model_validate(given)
        trial = make_trial(tmp_path, profile, extra_env=profile.env)
        conversations.append(Conversation(get_engine("acp"), trial))
        return conversations[-1]

    yield start
    for conversation in conversations:
        if conversation.trial.live is not None:
            anyio.run(conversation.trial.live.end)
    assert not running_trees


def pid_in(response: str) -> int:
    return int(response.split()[0])


@both_sessions
def test_turns_are_of_one_session_by_a_process_each_or_by_one(begin: Begin, session: str) -> None:
    conversation = begin(session=session)

    one, two, three = map(conversation.say, ("one", "call edit new.txt", "/three"))

    assert [error_kind(outcome) for outcome in conversation.outcomes] == [None] * 3
    assert three.response.endswith("was told: one | call edit new.txt |  /three")
    assert (pid_in(one.response) == pid_in(three.response)) is (session == "live")
    assert [outcome.session_verified for outcome in conversation.outcomes] == [None, True, True]
    kinds = [(item.type, item.text) for item in two.items if item.text]
    assert kinds == [
        ("reasoning", "Hmm."),
        ("message", "mode bypassPermissions"),
        ("message", "Well, by allow_once"),
    ]
    assert [(c.name, c.kind, c.arguments) for c in calls(two)] == [
        ("edit", "write", {"path": "new.txt"})
    ]
    (result,) = (item.tool_result for item in two.items if item.tool_result)
    assert (result.status, result.content) == ("success", "done")
    # Of several requests, agents tell different things; so does a process of several turns.
    told = [outcome.usage and outcome.usage.input_tokens for outcome in conversation.outcomes]
    assert told == ([100, None, 100] if session == "resume" else [100, None, None])
    assert not any(o.unknown_events or o.unread_lines or o.notices for o in conversation.outcomes)
    assert '"session/prompt"' not in raw_streams(conversation.trial)["turn-01.stdout.jsonl"]


def test_what_the_agent_left_running_is_ended_and_it_need_not_end_by_itself(begin: Begin) -> None:
    outcome = begin("lingering").say("leave one")
    assert error_kind(outcome) is None
    assert outcome.process is not None
    assert (outcome.process.ended_by, outcome.notices) == ("answered", [])
    noisy = begin().say("garbage")
    assert (error_kind(noisy), noisy.unread_lines, noisy.unknown_events) == (None, 1, 1)
    assert error_kind(begin("commands").say("/tmp is a directory")) == "protocol"


@pytest.mark.parametrize(
    ("quirks", "kind", "words"),
    [
        ("forgetful", "session_lost", "no longer holds its earlier turns"),
        ("resume-only", "session_lost", "no longer holds its earlier turns"),
        ("no-load", "no_resume", "Small agent cannot load"),
        ("late", "protocol", "it replayed earlier turns after it had loaded"),
        ("locked", "auth", "Authentication required"),
    ],
)
def test_a_session_that_is_not_all_there_is_an_error(
    begin: Begin, quirks: str, kind: str, words: str
) -> None:
    conversation = begin()
    conversation.say("one")
    changed = {**conversation.trial.extra_env, "QUIRKS": quirks}
    conversation.trial = replace(conversation.trial, extra_env=changed)

    outcome = conversation.say("two")

    assert error_kind(outcome) == kind
    assert outcome.error is not None
    assert words in outcome.error.message
    assert outcome.session_verified is False


def test_a_process_that_died_between_turns_is_replaced_if_the_agent_can_load(begin: Begin) -> None:
    for quirks, kind in (("", None), ("no-load", "no_resume")):
        conversation = begin(quirks, session="live")
        pid = pid_in(conversation.say("one").response)
        assert conversation.say("two").response == f"{pid} was told: one | two"
        os.kill(pid, signal.SIGKILL)
        while (row := read_row(pid)) is not None and not row.zombie:
            pass
        after = conversation.say("three")
        assert error_kind(after) == kind
        assert after.response.endswith("was told: one | two | three" if kind is None else "")


@pytest.mark.parametrize(
    ("prompt", "kind", "words"),
    [
        ("die", "crash", "exit code 3"),
        ("stop max_tokens", "model_error", "ran out of tokens"),
        ("stop max_turn_requests", "max_turns", "its own limit"),
        ("stop cancelled", "crash", "nobody had asked for"),
        ("stop sulking", "protocol", "'sulking'"),
        ("goose", "overloaded", "Ran into this error"),
        ("error -32603 401 wrong key", "auth", "401 wrong key"),
        ("error -32603 the 401 things", "model_error", "401 things"),
        ("error -32603 unexpected status 401 Unauthorized", "auth", "401"),
        ("error -32603 Request rejected (429): try again in 9 s", "rate_limit", "429"),
        ("error -32000 log in", "auth", "log in"),
        ("error -32603 fetch failed", "network", "fetch failed"),
    ],
)
def test_failures_of_a_turn_and_their_kinds(
    begin: Begin, prompt: str, kind: str, words: str
) -> None:
    outcome = begin("nameless" * (prompt == "goose")).say(prompt)
    assert error_kind(outcome) == kind
    assert outcome.error is not None
    assert words in outcome.error.message
    assert outcome.error.retry_after_seconds == (9 if "429" in prompt else None)


@pytest.mark.parametrize(
    ("permission", "prompt", "answer"),
    [
        ("full", "call execute ls", "by allow_once"),
        ("edits", "call execute ls", "by reject_once"),
        ("edits", "call edit a/b.txt", "by allow_once"),
        ("edits", "call edit a/../../b.txt", "by reject_once"),
        ("edits", "call edit /etc/passwd", "by reject_once"),
        ("read_only", "call edit a.txt", "by reject_once"),
        ("full", "file", "-32601"),
        ("full", "question", "decline"),
        ("full", "qwen", "by reject_once"),
    ],
)
def test_what_the_agent_asks_is_answered_by_the_permission(
    begin: Begin, permission: str, prompt: str, answer: str
) -> None:
    outcome = begin(permission=permission).say(prompt)

    assert (error_kind(outcome), outcome.response.removeprefix("Well, ")) == (None, answer)
    mode = {"full": "bypassPermissions", "edits": "acceptEdits", "read_only": "default"}
    assert f"mode {mode[permission]}" in [item.text for item in outcome.items]
    asked = ["the agent asked, and nobody was there to answer: Which colour?"]
    assert outcome.notices == (asked if prompt in ("question", "qwen") else [])
    results = [item.tool_result.status for item in outcome.items if item.tool_result]
    refused = "error" if "reject" in answer else "success"
    assert results == [refused] * (prompt.split()[0] in ("call", "qwen"))


def test_who_does_not_ask_is_told_of(begin: Begin) -> None:
    outcome = begin("unasked", permission="read_only").say("call execute ls")
    assert [call.arguments for call in calls(outcome)] == [{"command": "ls"}]
    assert [notice.partition(":")[0] for notice in outcome.notices] == [
        "the agent did not ask before `execute`"
    ]


@both_sessions
def test_a_time_limit_and_a_cancellation_end_it_after_a_word(begin: Begin, session: str) -> None:
    conversation = begin(session=session)
    workspace = conversation.trial.workspace
    assert error_kind(begin("mute").say("one", timeout_seconds=0.5)) == "timeout"
    assert error_kind(conversation.say("hang", timeout_seconds=1)) == "timeout"
    told = workspace / "told.txt"
    assert told.read_text() == "session/cancel"
    told.unlink()

    async def cancelled() -> bool:
        turn = TurnRequest(1, "hang", timeout_seconds=60)
        with anyio.move_on_after(1) as scope:
            await conversation.engine.start(turn, conversation.trial)
        return scope.cancelled_caught

    assert anyio.run(cancelled)
    assert told.read_text() == "session/cancel"
    assert not running_trees


def test_profiles_that_cannot_work_say_why(begin: Begin) -> None:
    engine = get_engine("acp")

    def problem(quirks: str = "", **keys: Any) -> str:
        found = anyio.run(engine.check, begin(quirks, **keys).trial.profile, {"HOME": "/nowhere"})
        return found.problem.message if found.problem is not None else found.version or ""

    assert problem() == "1.2.3"
    assert "speaks version 2, and skillup 1" in problem("modern")
    assert "name it in the profile's `command`" in problem(command=None)
    assert "the profile needs `base_url`, `model`" in problem(env={"A": "{base_url} {model}"})
    assert "`model` has to be handed on" in problem(model="m1")
    assert "SyntaxError" in problem(command=[sys.executable, "-c", "what now"])
    assert error_kind(begin().say("hello", system="Be terse.")) == "unsupported"


KEY = "sk-canary-7d1f20c4e8aa4b"


@pytest.mark.parametrize(
    ("quirks", "reply", "kinds"),
    [
        ("", Text("Fine."), [None, None]),
        ("amnesia", Text("Fine."), [None, "session_lost"]),
        ("resume-only", Text("Fine."), [None, None]),
        ("", HttpError(529, "busy", {"retry-after": "23"}), ["overloaded", "overloaded"]),
        ("", HttpError(401, "no"), ["auth", "auth"]),
        ("", Drop(), ["network", "network"]),
    ],
)
def test_the_gateway_has_the_key_and_proves_what_the_model_was_sent_and_said(
    begin: Begin, quirks: str, reply: Reply, kinds: list[str | None]
) -> None:
    """The agent answers with the errors of its model as if they were its own words."""
    seen: list[ModelRequest] = []

    def script(request: ModelRequest) -> Reply:
        seen.append(request)
        return reply

    env = {"MODEL_URL": "{base_url}", "KEY": "{key}", "MODEL": "{model}"}

    async def turns() -> None:
        with ModelServer(script) as server:
            keys = {"base_url": f"{server.url}/v1", "api_key_env": "LAB_KEY", "model": "m1"}
            conversation = begin(quirks, env=env, **keys)
            trial, engine = conversation.trial, conversation.engine
            assert engine.model_address(trial) == (f"{server.url}/v1", {"LAB_KEY"})  # type: ignore[attr-defined]
            async with open_gateway({}) as gateway:
                route = gateway.route(f"{server.url}/v1")
                own = {**trial.environment, "LAB_KEY": route.placeholder(KEY)}
                trial = replace(trial, environment=own, gateway=route)
                route.begin("turn-01", ["model one"])
                first = await engine.start(TurnRequest(1, "model one"), trial)
                outcomes = [compared(first, route, trial.profile)]
                route.begin("turn-02", ["model one", "model two"])
                turn = TurnRequest(2, "model two", previous=first.fingerprint)
                second = await engine.resume(first.session or "", turn, trial)  # type: ignore[attr-defined]
                outcomes.append(compared(second, route, trial.profile))
        assert [error_kind(outcome) for outcome in outcomes] == kinds
        if kinds == [None, None]:
            assert [o.usage and o.usage.input_tokens for o in outcomes] == [100, 100]
            assert outcomes[1].session_verified
        for outcome in outcomes:
            assert outcome.error is None or not quirks or "did not hold" in outcome.error.evidence
        assert {request.headers["authorization"] for request in seen} == {f"Bearer {KEY}"}
        assert {request.model for request in seen} == {"m1"}

    anyio.run(turns)


@pytest.mark.slow
def test_a_message_that_was_refused_begins_the_trial_anew(project: Project) -> None:
    """What an agent has stored of it, and where, nobody knows."""
    asked: list[str] = []

    def script(request: ModelRequest) -> Reply:
        asked.append(request.latest)
        refused = request.latest == "model two" and asked.count("model two") == 1
        return HttpError(429, "no", {"retry-after": "1"}) if refused else Text(request.latest)

    env = {"MODEL_URL": "{base_url}", "KEY": "{key}", "MODEL": "{model}"}
    profile = {"engine": "acp", "command": [sys.executable, str(AGENT)], "env": env, "model": "m"}
    with ModelServer(script) as server:
        profile |= {"base_url": f"{server.url}/v1", "api_key_env": "LAB_KEY"}
        case = "input: {turns: [model one, model two]}\nassertions: [{contains: model two}]\n"
        project.write({"engines/a.yaml": json.dumps(profile), "case.yaml": case})
        project.write({"eval.yaml": "name: lab\ncases: {files: [case.yaml]}\n"})
        result = project.run_json("eval.yaml", "-e", "a", env={"LAB_KEY": KEY})
    assert [(case["status"], case["attempt"]) for case in result["cases"]] == [("PASS", 2)]
    assert asked == ["model one", "model two", "model one", "model two"]
