"""A process that stays from turn to turn (`session: live`), with small programs as agents."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest

from skillup.engines.base import TurnRequest
from skillup.engines.registry import get_engine
from skillup.process.tree import running_trees
from skillup.schema.profile import Profile
from tests.support.engine_turns import Conversation, error_kind, make_trial, raw_streams

AGENT = """
import json, os, pathlib, sys, time
sessions = pathlib.Path(os.environ["CLAUDE_CONFIG_DIR"], "projects", "workspace")
sessions.mkdir(parents=True, exist_ok=True)
def tell(**event):
    print(json.dumps({"session_id": "SESSION", **event}), flush=True)
def end(text, turns):
    usage = {"model": {"inputTokens": 10 * turns, "outputTokens": turns}}
    cost = {"modelUsage": usage, "total_cost_usd": 0.5 * turns}
    tell(type="result", subtype="success", is_error=False, result=text, **cost)
for turns, line in enumerate(sys.stdin, start=1):
    text = json.loads(line)["message"]["content"][0]["text"]
    with (sessions / "SESSION.jsonl").open("a") as file:
        file.write(json.dumps({"type": "user", "message": {"content": text}}) + "\\n")
    tell(type="system", subtype="init")
    if text.startswith("ask"):
        request = {"subtype": "can_use_tool", "tool_name": text.split()[1], "input": {"a": 1}}
        tell(type="control_request", request_id="r1", request=request)
        text = json.loads(sys.stdin.readline())["response"]["response"]["behavior"]
    elif text == "hang":
        time.sleep(600)
    elif text == "background":
        tell(type="system", subtype="task_started", task_id="t1")
    end(f"{os.getpid()} {text}", turns)
    if text == "background":
        sys.stdin.read()
        tell(type="assistant", message={"content": [{"type": "text", "text": "It ended."}]})
        end("All done.", turns)
    elif text == "go on":
        time.sleep(0.5)
        tell(type="assistant", message={"content": [{"type": "text", "text": "Unasked."}]})
    elif text == "deaf":
        time.sleep(600)
"""

Begin = Callable[..., Conversation]


@pytest.fixture
def begin(tmp_path: Path) -> Iterator[Begin]:
    conversations: list[Conversation] = []

    def start(**keys: Any) -> Conversation:
        script = tmp_path / "agent.py"
        command = [sys.executable, str(script)]
        profile = Profile(engine="claude_code", command=command, session="live", **keys)
        trial = make_trial(tmp_path, profile)
        script.write_text(AGENT.replace("SESSION", trial.session_id))
        conversations.append(Conversation(get_engine("claude_code"), trial))
        return conversations[-1]

    yield start
    for conversation in conversations:
        assert conversation.trial.live is not None
        anyio.run(conversation.trial.live.end)
    assert not running_trees


def pid_in(response: str) -> str:
    return response.split()[0]


def test_one_process_answers_each_turn_with_its_own_stream_tokens_and_cost(begin: Begin) -> None:
    conversation = begin()

    one, two = conversation.say("one"), conversation.say("two")

    assert pid_in(one.response) == pid_in(two.response)
    for outcome in (one, two):
        assert outcome.usage is not None
        assert (outcome.usage.input_tokens, outcome.usage.output_tokens) == (10, 1)
        assert outcome.cost_usd == 0.5
        assert outcome.process is not None
        assert (outcome.process.ended_by, outcome.process.exit_code) == ("kept", None)
    streams = raw_streams(conversation.trial)
    assert ["two" in streams[f"turn-0{n}.stdout.jsonl"] for n in (1, 2)] == [False, True]


@pytest.mark.parametrize(
    ("permission", "tool", "answer"),
    [
        ("full", "Write", "allow"),
        ("edits", "Write", "deny"),
        ("read_only", "Write", "deny"),
        ("full", "AskUserQuestion", "deny"),
    ],
)
def test_a_request_over_stdio_is_answered_by_the_permission(
    begin: Begin, permission: str, tool: str, answer: str
) -> None:
    outcome = begin(permission=permission).say(f"ask {tool}")
    assert outcome.response.split()[1:] == [answer]
    assert outcome.unknown_events == 0


@pytest.mark.slow
def test_what_goes_on_in_the_background_is_waited_for_as_with_a_process_a_turn(
    begin: Begin,
) -> None:
    conversation = begin()
    outcome = conversation.say("background")
    assert (error_kind(outcome), outcome.response) == (None, "All done.")
    assert outcome.process is not None
    assert (outcome.process.ended_by, outcome.process.exit_code) == ("exit", 0)
    assert not running_trees
    assert conversation.say("and now?").session_verified


@pytest.mark.slow
@pytest.mark.parametrize("message", ["go on", "deaf"])
def test_a_process_that_speaks_out_of_turn_or_does_not_end_is_replaced(
    begin: Begin, message: str
) -> None:
    conversation = begin()
    first = conversation.say(message)
    assert conversation.trial.live is not None
    assert conversation.trial.live.process is not None
    if message == "deaf":
        anyio.run(conversation.trial.live.end)
    else:
        while conversation.trial.live.is_ready:
            pass

    second = conversation.say("again")

    assert (error_kind(second), second.session_verified) == (None, True)
    assert pid_in(second.response) != pid_in(first.response)
    assert [item.text for item in second.items] == []


def test_a_time_limit_and_a_cancellation_end_the_process(begin: Begin) -> None:
    conversation = begin()
    conversation.say("one")
    assert error_kind(conversation.say("hang", timeout_seconds=0.5)) == "timeout"
    assert not running_trees

    async def cancelled() -> bool:
        first = TurnRequest(1, "hang", timeout_seconds=60)
        with anyio.move_on_after(1) as scope:
            await conversation.engine.start(first, conversation.trial)
        return scope.cancelled_caught

    assert anyio.run(cancelled)
    assert not running_trees
