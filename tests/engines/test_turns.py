"""What the end of an agent's process means for its turn, with small real processes."""

from __future__ import annotations

import sys
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from skillup.engines.registry import get_engine
from skillup.schema.profile import Profile
from tests.support.engine_turns import Conversation, error_kind, make_trial, raw_streams

RESULT = (
    '{"type": "result", "subtype": "success", "is_error": false, "result": "Done.", '
    '"session_id": "SESSION"}'
)
CODEX_END = '{"type": "turn.completed", "usage": {}}'
CODEX_ROLLOUT = """
import json, os, pathlib, sys
print(json.dumps({"type": "thread.started", "thread_id": "SESSION"}))
sessions = pathlib.Path(os.environ["CODEX_HOME"], "sessions/2026/01/02")
sessions.mkdir(parents=True, exist_ok=True)
with (sessions / "rollout-x-SESSION.jsonl").open("a") as file:
    file.write('{"type": "event_msg", "payload": {"type": "user_message"}}\\n')
item = {"id": "item_0", "type": "agent_message", "text": "Done."}
print(json.dumps({"type": "item.completed", "item": item}))
"""
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


PROGRAMS = {"claude_code": say(RESULT), "codex": f"{CODEX_ROLLOUT}print({CODEX_END!r})\n"}


def agent(tmp_path: Path, program: str, engine: str = "claude_code", **keys: Any) -> Conversation:
    """An agent that runs the Python program, in which SESSION stands for the trial's."""
    script = tmp_path / "agent.py"
    profile = Profile(engine=engine, command=[sys.executable, str(script)], **keys)
    trial = make_trial(tmp_path, profile)
    script.write_text(program.replace("SESSION", trial.session_id))
    return Conversation(get_engine(engine), trial)


WARNS = "import sys; sys.exit('WARNING: proceeding\\nERROR codex_core: something')"


@pytest.mark.parametrize(
    ("engine", "program", "kind"),
    [
        ("claude_code", "pass", "protocol"),
        ("claude_code", "print('this is no JSON')", "protocol"),
        ("claude_code", "import sys; sys.exit(3)", "crash"),
        ("claude_code", say(RESULT) + "sys.exit(3)", "crash"),
        ("claude_code", "import os; os.kill(os.getpid(), 11)", "crash"),
        ("claude_code", "import sys; sys.exit(127)", "engine_not_usable"),
        ("claude_code", "import sys; sys.exit('error: unknown option --x')", "engine_not_usable"),
        ("claude_code", say(RESULT.replace("SESSION", "another")), "session_mismatch"),
        ("claude_code", "import time; time.sleep(60)", "timeout"),
        ("codex", WARNS, "crash"),  # codex is not judged by its warnings
        ("codex", f"print({CODEX_END!r})", "protocol"),  # which thread, it does not say
        (
            "codex",
            f"{CODEX_ROLLOUT}file.close(); os.remove(file.name); print({CODEX_END!r})",
            "session_mismatch",
        ),  # it leaves no session, as with `--ephemeral`
    ],
)
def test_an_end_without_an_answer_is_an_error_of_its_kind(
    tmp_path: Path, engine: str, program: str, kind: str
) -> None:
    patience = 2 if kind == "timeout" else 60
    outcome = agent(tmp_path, program, engine).say("hello", timeout_seconds=patience)
    assert error_kind(outcome) == kind


REPLACED = {
    "a link out": "shutil.copy(name, '/dev/shm/x-SESSION'); os.remove(name); "
    "os.symlink('/dev/shm/x-SESSION', name)",
    "a pipe": "os.remove(name); os.mkfifo(name)",
    "a file without end": "os.truncate(name, 1 << 42)",
    "a link to everything": "shutil.rmtree(sessions); os.symlink('/', sessions)",
}


@pytest.mark.parametrize("what", REPLACED)
@pytest.mark.parametrize("engine", PROGRAMS)
def test_what_an_agent_puts_in_place_of_its_session_is_not_read(
    tmp_path: Path, engine: str, what: str
) -> None:
    """It ran in a box; who reads does not, and would wait for ever, or read all of the disk."""
    program = f"{PROGRAMS[engine]}\nfile.close(); name = file.name\nimport shutil\n"
    conversation = agent(tmp_path, program + REPLACED[what], engine)
    try:
        kind = error_kind(conversation.say("hello")) or error_kind(conversation.say("and then?"))
        assert kind == ("session_lost" if engine == "claude_code" else "session_mismatch")
    finally:
        Path(f"/dev/shm/x-{conversation.trial.session_id}").unlink(missing_ok=True)


@pytest.mark.slow
@pytest.mark.parametrize("engine", PROGRAMS)
def test_an_agent_that_hangs_after_its_last_event_has_answered(tmp_path: Path, engine: str) -> None:
    """F2: the answer counts, and the process is ended long before the turn's limit."""
    program = PROGRAMS[engine] + "import time; sys.stdout.flush(); time.sleep(600)"
    outcome = agent(tmp_path, program, engine).say("hello", timeout_seconds=500)
    assert (error_kind(outcome), outcome.response) == (None, "Done.")
    assert outcome.process is not None
    assert outcome.process.ended_by == "answered"
    assert any("did not end by itself" in notice for notice in outcome.notices)


@pytest.mark.slow
def test_an_agent_that_goes_on_after_a_closing_event_is_waited_for(tmp_path: Path) -> None:
    """F2: a second `result` (of a task in the background) is the answer, however late it comes."""
    more = '{"type": "assistant", "message": {"content": [{"type": "text", "text": "more"}]}}'
    program = say(RESULT) + f"import time; print({more!r}, flush=True); time.sleep(6)\n"
    program += f"print({RESULT.replace('Done.', 'All done.')!r})"
    outcome = agent(tmp_path, program).say("hello")
    assert (error_kind(outcome), outcome.response) == (None, "All done.")


@pytest.mark.parametrize("engine", PROGRAMS)
def test_session_files_are_read_beside_the_event_loop(tmp_path: Path, engine: str) -> None:
    """F8: other trials' time limits do not wait while a long session is read."""
    long = "open(file.name, 'a').write('{' + ' ' * (2 << 20) + '}\\n')\n"
    conversation = agent(tmp_path, PROGRAMS[engine] + long, engine)
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


def test_streams_progress_and_secrets_turn_by_turn(tmp_path: Path) -> None:
    call = (
        '{"type": "assistant", "message": {"content": [{"type": "tool_use", "id": "1", '
        '"name": "Bash", "input": {"command": "ls   -l"}}]}}'
    )
    progress: list[str] = []
    program = say(call) + f"print({RESULT!r}); sys.stderr.write('a warning')"
    conversation = agent(tmp_path, program, args=["--header", "Bearer key-0123456789"])
    environment = {**conversation.trial.environment, "GATEWAY_TOKEN": "key-0123456789"}
    conversation.trial = replace(
        conversation.trial, environment=environment, progress=progress.append
    )

    outcomes = [conversation.say(prompt) for prompt in ("one", "two")]

    assert [error_kind(outcome) for outcome in outcomes] == [None, None]
    assert progress == ["Bash ls -l"] * 2
    raw = raw_streams(conversation.trial)
    first = raw["turn-01.stdout.jsonl"]
    assert first == f"{call}\n{RESULT.replace('SESSION', conversation.trial.session_id)}\n"
    assert raw["turn-02.stderr.txt"] == "a warning"
    assert outcomes[0].process is not None
    assert "Bearer ***GATEWAY_TOKEN***" in outcomes[0].process.argv
    assert "key-0123456789" not in str(outcomes)


def test_the_evidence_holds_the_end_of_both_streams(tmp_path: Path) -> None:
    program = "import sys; print('half a line of'); sys.exit('the reason')"
    outcome = agent(tmp_path, program).say("hello")
    assert outcome.error is not None
    assert "the reason" in outcome.error.message
    assert "the reason" in outcome.error.evidence
    assert "half a line of" in outcome.error.evidence


@pytest.mark.parametrize("forgets", ["os.remove(file.name)\n", "os.truncate(file.name, 0)\n"])
def test_a_session_that_holds_no_first_turn_is_not_resumed(tmp_path: Path, forgets: str) -> None:
    conversation = agent(tmp_path, say(RESULT) + forgets)
    first, second = conversation.say("one"), conversation.say("two")
    assert error_kind(first) is None
    assert any("cannot be resumed: " in notice for notice in first.notices)
    assert error_kind(second) == "session_lost"
    assert (second.session_verified, second.process) == (False, None)


@pytest.mark.parametrize("replaced", ["gone", "link", "a link above it"])
def test_no_agent_is_started_outside_of_its_workspace(tmp_path: Path, replaced: str) -> None:
    conversation = agent(tmp_path, say(RESULT))
    workspace = conversation.trial.workspace
    if replaced == "a link above it":
        moved = tmp_path.rename(f"{tmp_path}-moved")
        tmp_path.symlink_to(moved)
    else:
        workspace.rmdir()
    if replaced == "link":
        (tmp_path / "elsewhere").mkdir()
        workspace.symlink_to(tmp_path / "elsewhere")
    outcome = conversation.say("hello")
    assert (error_kind(outcome), outcome.process) == ("setup", None)
