"""What the end of an agent's process means for its turn, with small real processes."""

from __future__ import annotations

import sys
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from skillup.engines.claude_code.engine import ClaudeCode
from skillup.engines.codex.engine import Codex
from skillup.schema.profile import Profile
from tests.support.engine_turns import Conversation, error_kind, make_trial

RESULT = (
    '{"type": "result", "subtype": "success", "is_error": false, "result": "Done.", '
    '"session_id": "SESSION"}'
)

CODEX_END = '{"type": "turn.completed", "usage": {}}'
CODEX_ROLLOUT = """
import json, os, pathlib, sys
print(json.dumps({"type": "thread.started", "thread_id": "SESSION"}))
sessions = pathlib.Path(os.environ["CODEX_HOME"], "sessions")
sessions.mkdir(exist_ok=True)
with (sessions / "rollout-x-SESSION.jsonl").open("a") as file:
    file.write('{"type": "event_msg", "payload": {"type": "user_message"}}\\n')
item = {"id": "item_0", "type": "agent_message", "text": "Done."}
print(json.dumps({"type": "item.completed", "item": item}))
"""


def agent(tmp_path: Path, program: str, engine: str = "claude_code", **keys: Any) -> Conversation:
    """An agent that runs the Python program, in which SESSION and ARGV stand for what they say."""
    script = tmp_path / "agent.py"
    profile = Profile(engine=engine, command=[sys.executable, str(script)], **keys)
    trial = make_trial(tmp_path, profile)
    script.write_text(program.replace("SESSION", trial.session_id))
    return Conversation(ClaudeCode() if engine == "claude_code" else Codex(), trial)


REMEMBER = """
import json, os, pathlib, sys
sessions = pathlib.Path(os.environ["CLAUDE_CONFIG_DIR"], "projects", "workspace")
sessions.mkdir(parents=True, exist_ok=True)
with (sessions / "SESSION.jsonl").open("a") as file:
    entry = {"type": "user", "message": {"role": "user", "content": sys.stdin.read()}}
    file.write(json.dumps(entry) + "\\n")
"""


def say(text: str) -> str:
    return f"{REMEMBER}\nprint({text!r})\n"


def test_an_agent_that_exits_cleanly_with_its_result_has_answered(tmp_path: Path) -> None:
    outcome = agent(tmp_path, say(RESULT)).say("hello")

    assert error_kind(outcome) is None
    assert outcome.response == "Done."


@pytest.mark.parametrize(
    ("program", "kind"),
    [
        ("pass", "protocol"),
        ("print('this is no JSON')", "protocol"),
        ("import sys; sys.exit(3)", "crash"),
        (say(RESULT) + "sys.exit(3)", "crash"),
        ("import os; os.kill(os.getpid(), 11)", "crash"),
        ("import sys; sys.exit(127)", "engine_not_usable"),
        ("import sys; sys.exit('error: unknown option --x')", "engine_not_usable"),
        (say(RESULT.replace("SESSION", "another")), "session_mismatch"),
        ("import time; time.sleep(60)", "timeout"),
    ],
)
def test_any_other_end_is_an_error_of_its_kind(tmp_path: Path, program: str, kind: str) -> None:
    outcome = agent(tmp_path, program).say("hello", timeout_seconds=2)

    assert error_kind(outcome) == kind


@pytest.mark.parametrize(
    ("engine", "closing"),
    [("claude_code", RESULT), ("codex", CODEX_END)],
)
def test_an_agent_that_hangs_after_its_closing_event_has_answered(
    tmp_path: Path, engine: str, closing: str
) -> None:
    """F2: the answer counts, and the process is ended long before the turn's limit."""
    program = say(closing) if engine == "claude_code" else f"{CODEX_ROLLOUT}print({closing!r})\n"
    program += "import time; sys.stdout.flush(); time.sleep(600)"

    outcome = agent(tmp_path, program, engine).say("hello", timeout_seconds=500)

    assert error_kind(outcome) is None
    assert outcome.response == "Done."
    assert outcome.process is not None
    assert outcome.process.ended_by == "answered"
    assert any("did not end by itself" in notice for notice in outcome.notices)


def test_an_agent_that_goes_on_after_a_closing_event_is_waited_for(tmp_path: Path) -> None:
    """F2: a second `result` (of a task in the background) is the answer, however late it comes."""
    more = '{"type": "assistant", "message": {"content": [{"type": "text", "text": "more"}]}}'
    program = say(RESULT) + f"import time; print({more!r}, flush=True); time.sleep(6)\n"
    program += f"print({RESULT.replace('Done.', 'All done.')!r})"

    outcome = agent(tmp_path, program).say("hello")

    assert error_kind(outcome) is None
    assert outcome.response == "All done."


@pytest.mark.parametrize("engine", ["claude_code", "codex"])
def test_session_files_are_read_beside_the_event_loop(tmp_path: Path, engine: str) -> None:
    """F8: other trials' time limits do not wait while a long session is read."""
    program = say(RESULT)
    if engine == "codex":
        program = f"{CODEX_ROLLOUT}print({CODEX_END!r})"
    conversation = agent(tmp_path, program, engine)
    file_name = f"{conversation.trial.session_id}.jsonl"
    readers: list[int] = []
    watching = True

    def watch(event: str, arguments: tuple[Any, ...]) -> None:
        if watching and event == "open" and str(arguments[0]).endswith(file_name):
            readers.append(threading.get_ident())

    sys.addaudithook(lambda event, arguments: watch(event, arguments))
    for prompt in ("one", "two"):
        conversation.say(prompt)
    watching = False

    assert readers
    assert threading.get_ident() not in readers


def test_the_evidence_holds_what_the_agent_said(tmp_path: Path) -> None:
    program = "import sys; print('half a line of'); sys.exit('the reason')"

    outcome = agent(tmp_path, program).say("hello")

    assert outcome.error is not None
    assert "the reason" in outcome.error.message
    assert "the reason" in outcome.error.evidence
    assert "half a line of" in outcome.error.evidence


def test_the_raw_streams_are_kept_turn_by_turn(tmp_path: Path) -> None:
    program = say(RESULT) + "sys.stderr.write('a warning')"
    conversation = agent(tmp_path, program)

    conversation.say("one")
    conversation.say("two")

    names = sorted(path.name for path in conversation.trial.raw_dir.iterdir())
    assert names == [
        "turn-01.stderr.txt",
        "turn-01.stdout.jsonl",
        "turn-02.stderr.txt",
        "turn-02.stdout.jsonl",
    ]
    first = conversation.trial.raw_dir / "turn-01.stdout.jsonl"
    assert first.read_text() == RESULT.replace("SESSION", conversation.trial.session_id) + "\n"
    assert (conversation.trial.raw_dir / "turn-02.stderr.txt").read_text() == "a warning"


def test_an_argument_that_is_a_secret_is_masked_in_the_record(tmp_path: Path) -> None:
    conversation = agent(tmp_path, say(RESULT), args=["--header", "Bearer key-0123456789"])
    environment = {**conversation.trial.environment, "GATEWAY_TOKEN": "key-0123456789"}
    conversation.trial = replace(conversation.trial, environment=environment)

    outcome = conversation.say("hello")

    assert outcome.process is not None
    assert "Bearer ***GATEWAY_TOKEN***" in outcome.process.argv
    assert "key-0123456789" not in str(outcome)


def test_a_program_that_may_not_be_run_is_not_usable(tmp_path: Path) -> None:
    program = tmp_path / "claude"
    program.write_text("#!/bin/sh\n")
    trial = make_trial(tmp_path, Profile(engine="claude_code", command=[str(program)]))

    outcome = Conversation(ClaudeCode(), trial).say("hello")

    assert error_kind(outcome) == "engine_not_usable"


def test_warnings_on_stderr_do_not_make_codex_fail_by_themselves(tmp_path: Path) -> None:
    program = "import sys; sys.exit('WARNING: proceeding\\nERROR codex_core: something')"

    outcome = agent(tmp_path, program, "codex").say("hello")

    assert error_kind(outcome) == "crash"


def test_progress_is_told_while_the_turn_runs(tmp_path: Path) -> None:
    call = (
        '{"type": "assistant", "message": {"content": [{"type": "tool_use", "id": "1", '
        '"name": "Bash", "input": {"command": "ls   -l"}}]}}'
    )
    told: list[str] = []
    conversation = agent(tmp_path, say(call + "\n" + RESULT))
    conversation.trial = replace(conversation.trial, progress=told.append)

    conversation.say("hello")

    assert told == ["Bash ls -l"]


@pytest.mark.parametrize(
    "forgets",
    ["os.remove(file.name)\n", "os.truncate(file.name, 0)\n"],
)
def test_a_session_that_holds_no_first_turn_is_not_resumed(tmp_path: Path, forgets: str) -> None:
    conversation = agent(tmp_path, say(RESULT) + forgets)
    assert error_kind(conversation.say("one")) is None

    second = conversation.say("two")

    assert error_kind(second) == "session_lost"
    assert second.session_verified is False
    assert second.process is None


@pytest.mark.parametrize("replaced", ["gone", "link"])
def test_no_agent_is_started_outside_of_its_workspace(tmp_path: Path, replaced: str) -> None:
    conversation = agent(tmp_path, say(RESULT))
    workspace = conversation.trial.workspace
    workspace.rmdir()
    if replaced == "link":
        (tmp_path / "elsewhere").mkdir()
        workspace.symlink_to(tmp_path / "elsewhere")

    outcome = conversation.say("hello")

    assert error_kind(outcome) == "setup"
    assert outcome.process is None


def test_an_answer_of_a_thread_without_a_name_is_not_believed(tmp_path: Path) -> None:
    outcome = agent(tmp_path, 'print(\'{"type": "turn.completed"}\')', "codex").say("hello")

    assert error_kind(outcome) == "protocol"
