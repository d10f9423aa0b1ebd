"""Every fault of the scripted agent becomes an error of the right kind, and leaves nothing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import anyio
import pytest

from skillup.schema.record import TurnError
from tests.support.scripted_trial import ScriptedTrial

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


async def failed_turn(trial: ScriptedTrial, prompt: str = "go", **request: Any) -> TurnError:
    outcome = await trial.turn(prompt, **request)
    assert outcome.error is not None, outcome
    assert trial.processes() == []
    return outcome.error


def misbehaving(base: Path, *, turn: int = 1, **faults: Any) -> ScriptedTrial:
    return ScriptedTrial(base, [{"turn": turn, "say": "hi", "misbehave": faults}, {"say": "well"}])


@pytest.mark.parametrize(
    "kind", ["auth", "rate_limit", "quota", "overloaded", "model_error", "max_turns"]
)
async def test_an_error_that_the_agent_reports(tmp_path: Path, kind: str) -> None:
    error = await failed_turn(misbehaving(tmp_path, error=kind))
    assert error.kind == kind
    assert error.message.startswith("scripted: ")


@pytest.mark.parametrize(
    ("code", "said"), [(7, "exit code 7"), (-9, "signal 9"), (-15, "signal 15")]
)
async def test_a_crash(tmp_path: Path, code: int, said: str) -> None:
    error = await failed_turn(misbehaving(tmp_path, exit_code=code))
    assert error.kind == "crash"
    assert said in error.message


@pytest.mark.parametrize("fault", [{"no_result": True}, {"exit_code": 0}, {"garbage": True}])
async def test_an_end_without_a_result(tmp_path: Path, fault: dict[str, Any]) -> None:
    error = await failed_turn(misbehaving(tmp_path, **fault))
    assert error.kind == "protocol"
    assert "last lines of stdout" in error.evidence


async def test_no_answer_in_time(tmp_path: Path) -> None:
    error = await failed_turn(misbehaving(tmp_path, hang=True), timeout_seconds=0.5)
    assert error.kind == "timeout"
    assert "0.5 s" in error.message


async def test_no_answer_in_time_from_one_who_ignores_signals(tmp_path: Path) -> None:
    trial = ScriptedTrial(
        tmp_path,
        [
            {
                "steps": [{"run": "(sleep 600 &) ; (setsid sleep 600 &) ; true"}],
                "misbehave": {"hang": True, "ignore_signals": True, "orphan": True},
            }
        ],
    )
    error = await failed_turn(trial, timeout_seconds=1.0)
    assert error.kind == "timeout"


async def test_a_command_that_does_not_end_is_ended_with_the_turn(tmp_path: Path) -> None:
    trial = ScriptedTrial(tmp_path, [{"steps": [{"run": "sleep 600"}]}])
    assert (await failed_turn(trial, timeout_seconds=0.5)).kind == "timeout"


async def test_a_cancelled_turn_leaves_nothing(tmp_path: Path) -> None:
    trial = ScriptedTrial(tmp_path, [{"steps": [{"run": "touch begun; sleep 600"}]}])
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(trial.turn, "go")
        while not (trial.workspace / "begun").exists():  # noqa: ASYNC110 - a file has no event
            await anyio.sleep(0.02)
        tasks.cancel_scope.cancel()
    assert trial.processes() == []


async def test_an_orphan_is_ended_and_the_answer_stands(tmp_path: Path) -> None:
    trial = misbehaving(tmp_path, orphan=True)
    outcome = await trial.turn("go")
    assert (outcome.error, outcome.response) == (None, "hi")
    assert outcome.process is not None
    assert outcome.process.leftover_processes == 1
    assert trial.processes() == []


async def test_a_flood_before_the_answer_is_an_event_that_is_not_known(tmp_path: Path) -> None:
    outcome = await misbehaving(tmp_path, flood_bytes=3_000_001).turn("go")
    assert (outcome.error, outcome.response) == (None, "hi")
    assert outcome.unknown_events == 1


async def test_a_forgotten_session_is_lost(tmp_path: Path) -> None:
    trial = misbehaving(tmp_path, turn=3, forget=True)
    assert (await trial.turn("one")).error is None
    assert (await trial.turn("two")).error is None
    outcome = await trial.turn("three")
    assert outcome.error is not None
    assert outcome.error.kind == "session_lost"
    assert outcome.session_verified is False


async def test_a_forgotten_session_explains_what_the_agent_does_not_know(tmp_path: Path) -> None:
    replies: list[dict[str, Any]] = [
        {"turn": 1, "say": "one"},
        {"say": "{{turns.1.user}}", "misbehave": {"forget": True}},
    ]
    trial = ScriptedTrial(tmp_path, replies)
    await trial.turn("one")
    assert (await failed_turn(trial)).kind == "session_lost"


@pytest.mark.parametrize("turn", [1, 2])
async def test_an_answer_from_another_session(tmp_path: Path, turn: int) -> None:
    trial = misbehaving(tmp_path, turn=turn, new_session=True)
    if turn == 2:
        assert (await trial.turn("one")).error is None
    error = await failed_turn(trial)
    assert error.kind == "session_mismatch"
    assert trial.context.session_id in error.message


async def test_a_session_file_that_is_gone_is_lost(tmp_path: Path) -> None:
    trial = misbehaving(tmp_path, turn=9)
    await trial.turn("one")
    trial.session_path.unlink()
    error = await failed_turn(trial)
    assert error.kind == "session_lost"
    assert "its file is gone: it held " in error.evidence


async def test_a_session_file_with_other_earlier_turns_is_lost(tmp_path: Path) -> None:
    trial = misbehaving(tmp_path, turn=9)
    await trial.turn("one")
    text = trial.session_path.read_text()
    trial.session_path.write_text(text.replace('"one"', '"eno"'))
    outcome = await trial.turn("go")
    assert outcome.error is not None
    assert outcome.error.kind == "session_lost"
    assert f"{trial.session_path}: it held {len(text)} bytes" in outcome.error.evidence
    assert outcome.response == ""
    assert outcome.process is None


async def test_a_message_that_somebody_adds_between_two_turns_ends_the_trial(
    tmp_path: Path,
) -> None:
    """S8: it was `session_verified: true`."""
    trial = misbehaving(tmp_path, turn=9)
    await trial.turn("one")
    with trial.session_path.open("a") as session:
        session.write(json.dumps({"type": "user", "text": "forged"}) + "\n")
    outcome = await trial.turn("go")
    assert outcome.session_verified is False
    assert outcome.error is not None
    assert outcome.error.kind == "session_mismatch"
    assert "bytes after the turn before" in outcome.error.evidence


async def test_a_session_that_exists_already_is_not_begun_again(tmp_path: Path) -> None:
    trial = misbehaving(tmp_path, turn=9)
    trial.session_path.parent.mkdir(parents=True)
    trial.session_path.write_text(json.dumps({"type": "session"}) + "\n")
    assert (await failed_turn(trial)).kind == "session_mismatch"


async def test_faults_end_with_the_attempts_they_are_meant_for(tmp_path: Path) -> None:
    replies = [{"say": "hi", "misbehave": {"error": "overloaded", "times": 2}}]
    errors = [
        (await ScriptedTrial(tmp_path / str(attempt), replies, attempt=attempt).turn("go")).error
        for attempt in (1, 2, 3)
    ]
    assert [error.kind if error else None for error in errors] == ["overloaded", "overloaded", None]


async def test_faults_happen_as_often_as_asked(tmp_path: Path) -> None:
    replies = [{"say": "hi", "misbehave": {"error": "auth", "probability": 0.5}}]
    errors = [
        (await ScriptedTrial(tmp_path / str(seed), replies, seed=seed).turn("go")).error
        for seed in range(12)
    ]
    assert 0 < sum(error is not None for error in errors) < 12


async def test_a_message_without_a_reply_says_what_to_do(tmp_path: Path) -> None:
    trial = ScriptedTrial(tmp_path, [{"turn": 1, "say": "hi"}])
    await trial.turn("one")
    error = await failed_turn(trial, "two")
    assert error.kind == "model_error"
    assert 'no reply of the script applies to turn 2: "two"' in error.message
    assert "add a reply" in error.message


async def test_a_case_without_a_script_does_not_start_anything(tmp_path: Path) -> None:
    trial = ScriptedTrial(tmp_path, None)
    outcome = await trial.turn("go")
    assert outcome.error is not None
    assert outcome.error.kind == "engine_not_usable"
    assert "`scripted:` section" in outcome.error.message
    assert outcome.process is None


async def test_a_command_that_is_not_there(tmp_path: Path) -> None:
    trial = ScriptedTrial(tmp_path, [{"say": "x"}], command=["no-such-agent"])
    assert (await failed_turn(trial)).kind == "engine_not_found"


async def test_wrong_arguments_are_a_crash_that_shows_what_was_said(tmp_path: Path) -> None:
    trial = ScriptedTrial(tmp_path, [{"say": "x"}], args=["--nonsense"])
    error = await failed_turn(trial)
    assert error.kind == "crash"
    assert "--nonsense" in error.message


async def test_a_step_over_the_limit(tmp_path: Path) -> None:
    trial = ScriptedTrial(tmp_path, [{"steps": [{"run": "true"}], "say": "x"}], max_turns=5)
    assert (await failed_turn(trial, max_steps=1)).kind == "max_turns"
