"""The claude_code adapter with the real `claude`: whatever can go wrong is an error of its kind."""

from __future__ import annotations

import socket
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from skillup.engines.base import SessionRef, TurnRequest
from skillup.engines.claude_code.engine import ClaudeCode
from skillup.schema.profile import Profile
from tests.support.held_turns import Conversation, error_kind, make_trial
from tests.support.lab_engines import claude_conversation, file_of, with_variables
from tests.support.model_server import (
    Answer,
    CutStream,
    Drop,
    Hang,
    HttpError,
    ModelRequest,
    ModelServer,
    Reply,
    Rule,
    Shell,
    Text,
    by_rules,
)

pytestmark = pytest.mark.e2e
Serve = Callable[..., ModelServer]
Begin = Callable[..., Conversation]


@pytest.fixture
def begin(claude_cli: Path, tmp_path: Path) -> Begin:
    """`begin(url, **profile keys)`: a conversation with claude."""
    return partial(claude_conversation, claude_cli, tmp_path)


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
    with_variables(conversation, ANTHROPIC_API_KEY="")

    outcome = conversation.say("hello")

    assert error_kind(outcome) == "auth"
    assert outcome.error is not None
    assert "ANTHROPIC_API_KEY" in outcome.error.message


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


def test_a_session_that_somebody_wrote_to_between_two_turns_is_not_gone_on_with(
    begin: Begin, model_server: Serve
) -> None:
    """S8: a message added by another trial's agent was `session_verified: true`."""
    server = model_server()
    conversation = begin(server.url)
    conversation.say("My word is walrus.")
    path = file_of(conversation)
    path.write_text(path.read_text() + path.read_text().splitlines()[-1] + "\n")

    outcome = conversation.say("Which word?")

    assert error_kind(outcome) == "session_mismatch"
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
    assert outcome.response == ""
    assert outcome.error is not None
    assert str(file_of(conversation)) in outcome.error.evidence
    assert "as if nothing were wrong" in outcome.error.evidence


def test_a_session_that_never_was_is_lost(begin: Begin, model_server: Serve) -> None:
    conversation = begin(model_server().url)
    turn = TurnRequest(2, "hello")

    outcome = conversation.resume(SessionRef("3f0e7a54-0000-4000-8000-000000000000"), turn)

    assert error_kind(outcome) == "session_lost"


def test_an_unknown_slash_command_is_an_error_not_an_answer(
    begin: Begin, model_server: Serve
) -> None:
    server = model_server()

    outcome = begin(server.url).say("/nosuch thing", slash_command=True)

    assert error_kind(outcome) == "unsupported"
    assert server.requests == []


def test_too_many_steps_are_an_error(begin: Begin, model_server: Serve) -> None:
    server = model_server(by_rules(Rule("work", [Shell("echo 1")] * 5)))

    outcome = begin(server.url).say("work", max_steps=2)

    assert error_kind(outcome) == "max_turns"
