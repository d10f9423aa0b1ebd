"""With the real CLIs, what goes wrong is an error of its kind; the rest: `test_conformance.py`."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from skillup.engines.base import TurnRequest
from tests.e2e.conftest import KEYS, Begin, Lab, Serve, file_of, with_variables
from tests.support.engine_turns import error_kind
from tests.support.model_server import (
    Answer,
    CutStream,
    Hang,
    HttpError,
    Reply,
    Rule,
    Shell,
    Text,
    by_rules,
)

pytestmark = pytest.mark.e2e
slow = pytest.mark.slow
only_claude = pytest.mark.parametrize("engine", ["claude"])
only_codex = pytest.mark.parametrize("engine", ["codex"])
# Codex takes a bubblewrap on PATH that has these options.
NO_NAMESPACES = """
    #!/bin/sh
    [ "$1" != --help ] || exec printf "%s\\n" --argv0 --perms --ro-bind-fd --as-pid-1
    echo "bwrap: setting up uid map: Permission denied" >&2
    exit 1
    """


@pytest.mark.parametrize(
    ("reply", "kinds"),
    [
        (HttpError(529, "overloaded"), ("overloaded", "overloaded")),
        pytest.param(HttpError(400, "unexpected status 401"), ("model_error",) * 2, marks=slow),
        pytest.param(CutStream("whole"), (None, "network"), marks=slow),
        pytest.param(Answer(Text("part"), stop="max_tokens"), ("model_error",) * 2, marks=slow),
    ],
    ids=str,
)
def test_a_failure_of_the_model_is_an_error_of_its_kind(
    begin: Begin, model_server: Serve, engine: str, reply: Reply, kinds: tuple[str | None, str]
) -> None:
    outcome = begin(model_server(lambda request: reply).url).say("hello")

    kind = dict(zip(("claude", "codex"), kinds, strict=True))[engine]
    assert error_kind(outcome) == kind
    if kind is not None:
        assert outcome.error is not None
        assert outcome.error.evidence
        assert not isinstance(reply, HttpError) or outcome.cost_usd is None  # not $0.00


def test_a_killed_cli_is_a_crash(begin: Begin, model_server: Serve) -> None:
    kill = Shell("sleep 0.3; kill -9 $PPID")
    assert error_kind(begin(model_server(by_rules(Rule("die", [kill]))).url).say("die")) == "crash"


@slow
@only_claude
def test_an_interrupted_claude_is_no_completed_turn(
    begin: Begin, model_server: Serve, tmp_path: Path
) -> None:
    """SIGINT while it waits for the model: exit code 0 and no `result`."""
    asked = tmp_path / "asked"

    def hang(_: object) -> Reply:
        asked.touch()
        return Hang(20)

    server = model_server(hang)
    (claude,) = begin(server.url).trial.profile.command or []
    wait = f"until [ -e {asked} ]; do sleep 1; done"
    interrupt = f'exec 3<&0; "$0" "$@" <&3 & {wait}; kill -INT $!; wait $!; exit 0'
    outcome = begin(server.url, command=["sh", "-c", interrupt, claude]).say("hello")
    assert (error_kind(outcome), bool(server.requests)) == ("protocol", True)


@only_codex
def test_a_new_thread_in_place_of_one_whose_id_is_none_is_no_answer_and_a_warning_a_notice(
    begin: Begin, model_server: Serve
) -> None:
    lost = begin(model_server().url).resume("no-thread", TurnRequest(2, "hello"))
    warned = begin(model_server().url, model="no-such-model").say("hello")
    assert (error_kind(lost), error_kind(warned)) == ("session_mismatch", None)
    assert any("no-such-model" in notice for notice in warned.notices)


@only_claude
def test_a_missing_login_or_key_is_an_error_naming_it(begin: Begin, model_server: Serve) -> None:
    server = model_server()
    loggedout = with_variables(begin(server.url), ANTHROPIC_API_KEY="")

    without, unset = loggedout.say("hello"), begin(server.url, api_key_env="NOT_SET").say("hello")

    for outcome, name in ((without, "ANTHROPIC_API_KEY"), (unset, "NOT_SET")):
        assert error_kind(outcome) == "auth"
        assert outcome.error is not None
        assert name in outcome.error.message
    assert server.requests == []


def test_a_cli_that_is_missing_or_takes_no_such_option_cannot_be_used(
    begin: Begin, model_server: Serve
) -> None:
    url = model_server().url

    missing = begin(url, command=["no-such-cli"]).say("hello")
    wrong = begin(url, args=["--no-such-option"]).say("hello")

    assert (error_kind(missing), error_kind(wrong)) == ("engine_not_found", "engine_not_usable")
    assert missing.error is not None
    assert "npm install" in missing.error.message


def test_a_session_that_somebody_touched_between_two_turns_is_not_resumed(
    begin: Begin, model_server: Serve
) -> None:
    """S8: a message that another trial's agent added was `session_verified: true`."""
    server = model_server()
    conversation = begin(server.url)
    conversation.say("My word is walrus.")
    path = file_of(conversation)
    whole = path.read_text()
    for content, kind in (
        (whole + whole.splitlines()[-1] + "\n", "session_mismatch"),
        (whole.replace("walrus", "turtle"), "session_lost"),
        (None, "session_lost"),
    ):
        path.unlink() if content is None else path.write_text(content)
        outcome = conversation.say("Which word?")
        conversation.outcomes.pop()
        assert (error_kind(outcome), outcome.session_verified) == (kind, False), content
    assert len(server.requests) == 1


@only_claude
def test_an_unknown_slash_command_and_too_many_steps_are_errors(
    begin: Begin, model_server: Serve
) -> None:
    server = model_server(by_rules(Rule("work", [Shell("echo 1")] * 5)))

    unknown = begin(server.url).say("/nosuch thing", slash_command=True)

    assert error_kind(unknown) == "unsupported"
    assert server.requests == []
    assert error_kind(begin(server.url).say("work", max_steps=2)) == "max_turns"


@pytest.mark.skipif(sys.platform == "darwin", reason="codex takes no other sandbox there")
@pytest.mark.parametrize("commands", [["echo one", "touch two"]], ids=len)
def test_a_sandbox_that_lets_no_command_run_is_an_error_of_the_machine(
    lab: Lab, commands: list[str]
) -> None:
    """S2: a bubblewrap that may make no namespace; codex shows no event for its commands."""
    script = by_rules(Rule("go", [*map(Shell, commands), Text("I could not.")]))
    case = "input: {prompt: go}\nassertions: [{contains: done}, {tool_not_called: {kind: shell}}]\n"
    files = {"cases/one.yaml": case, "bin/bwrap": NO_NAMESPACES}
    project, _ = lab(script, files, "permission: edits\n")
    (project.root / "bin/bwrap").chmod(0o755)
    path = f"{project.root / 'bin'}:{os.environ['PATH']}"

    outcome = project.run("run", "cases", "-e", "codex", "--json", env={**KEYS, "PATH": path})

    (grade,) = outcome.data["cases"]
    assert (grade["status"], grade["error"]["kind"]) == ("ERROR", "setup"), outcome.stderr
    assert "bwrap: setting up uid map: Permission denied" in grade["error"]["message"]
    (turn,) = project.record("one/codex/with_skill/1")["turns"]
    tried = [i["tool_call"]["arguments"] for i in turn["transcript"] if i["tool_call"]]
    assert tried == [{"command": command} for command in commands]
