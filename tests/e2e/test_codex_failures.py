"""The codex adapter with the real `codex`: whatever can go wrong is an error of its kind."""

from __future__ import annotations

import os
import shlex
import socket
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from skillup.engines.base import SessionRef, TurnRequest
from skillup.engines.codex.engine import Codex
from skillup.schema.profile import Profile
from tests.support.held_turns import Conversation, error_kind, make_trial
from tests.support.lab_engines import codex_conversation, file_of, state_of
from tests.support.lab_profiles import KEYS
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
    by_rules,
)
from tests.support.model_server import Usage as Tokens
from tests.support.project import Project

pytestmark = pytest.mark.e2e
Serve = Callable[..., ModelServer]
Begin = Callable[..., Conversation]
# Codex takes a bubblewrap on PATH that has these options.
NO_NAMESPACES = """
    #!/bin/sh
    [ "$1" != --help ] || exec printf "%s\\n" --argv0 --perms --ro-bind-fd --as-pid-1
    echo "bwrap: setting up uid map: Permission denied" >&2
    exit 1
    """
NO_THREAD = "3f0e7a54-0000-4000-8000-000000000000"


@pytest.fixture
def begin(codex_cli: Path, tmp_path: Path) -> Begin:
    """`begin(url, **profile keys)`: a conversation with codex."""
    return partial(codex_conversation, codex_cli, tmp_path)


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


def test_a_thread_that_somebody_wrote_to_between_two_turns_is_not_gone_on_with(
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


@pytest.mark.parametrize("replaced", [False, True], ids=["in place", "by another file"])
def test_what_a_turn_whose_thread_was_changed_cost_is_counted_all_the_same(
    begin: Begin, model_server: Serve, replaced: bool
) -> None:
    tamper = (
        "import sys, pathlib; p, = pathlib.Path(sys.argv[1]).rglob('rollout-*.jsonl'); "
        "text = p.read_text().replace('walrus', 'a turtle'); "
        + ("p.unlink(); p.write_text(text)" if replaced else "p.write_text(text)")
    )

    def script(request: ModelRequest) -> Reply:
        usage = Tokens(input=100, cached=10, output=7)
        if request.latest == "two" and request.tool_round == 0:
            home = state_of(conversation)
            return Answer(Shell(shlex.join([sys.executable, "-c", tamper, str(home)])), usage=usage)
        return Answer(Text("as if nothing were wrong"), usage=usage)

    conversation = begin(model_server(script).url)
    conversation.say("My word is walrus.")

    outcome = conversation.say("two")

    assert error_kind(outcome) == "session_lost"
    assert outcome.response == ""
    assert outcome.error is not None
    assert "rollout-" in outcome.error.evidence
    assert "as if nothing were wrong" in outcome.error.evidence
    assert outcome.usage is not None
    assert (outcome.usage.input_tokens, outcome.usage.output_tokens) == (200, 14)
    assert outcome.usage.cached_input_tokens == 20


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


def test_a_warning_is_a_notice_not_a_failure(begin: Begin, model_server: Serve) -> None:
    outcome = begin(model_server().url, model="no-such-model").say("hello")

    assert error_kind(outcome) is None
    assert outcome.response == "Turn 1: hello"
    assert any("no-such-model" in notice for notice in outcome.notices)


@pytest.mark.skipif(sys.platform == "darwin", reason="codex takes no other sandbox there")
@pytest.mark.parametrize("commands", [["echo one"], ["echo one", "touch two"]], ids=len)
def test_a_sandbox_that_lets_no_command_run_is_an_error_of_the_machine(
    project: Project,
    lab_profiles: Callable[..., dict[str, str]],
    model_server: Serve,
    commands: list[str],
) -> None:
    """S2: a bubblewrap that may make no namespace; codex shows no event for its commands."""
    script = by_rules(Rule("go", [*map(Shell, commands), Text("I could not.")]))
    case = "input: {prompt: go}\nassertions: [{contains: done}, {tool_not_called: {kind: shell}}]\n"
    project.write(
        lab_profiles(model_server(script).url, "permission: edits\n")
        | {
            "cases/eval.yaml": "name: lab\n",
            "cases/one.yaml": case,
            "bin/bwrap": NO_NAMESPACES,
        }
    )
    (project.root / "bin/bwrap").chmod(0o755)
    path = f"{project.root / 'bin'}:{os.environ['PATH']}"

    outcome = project.run("run", "cases", "-e", "codex", "--json", env={**KEYS, "PATH": path})

    (grade,) = outcome.data["cases"]
    assert (grade["status"], grade["error"]["kind"]) == ("ERROR", "setup"), outcome.stderr
    assert "bwrap: setting up uid map: Permission denied" in grade["error"]["message"]
    record = project.record("one/codex/with_skill/1")
    (turn,) = record["turns"]
    tried = [i["tool_call"]["arguments"] for i in turn["transcript"] if i["tool_call"]]
    assert tried == [{"command": command} for command in commands]
