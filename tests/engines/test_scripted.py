"""The scripted engine: turns in real processes, resumed sessions, records of what was done."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest
import yaml

from skillup.engines.base import Engine, EngineTurn, SessionResumer
from skillup.engines.registry import get_engine
from skillup.engines.scripted.engine import ScriptedEngine
from skillup.redaction.secrets import Secrets
from skillup.schema.profile import Profile
from tests.support.scripted_trial import ScriptedTrial

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


def response(outcome: EngineTurn) -> str:
    assert outcome.error is None, outcome.error
    return outcome.response


def test_it_is_an_engine_that_resumes() -> None:
    engine: Engine = get_engine("scripted")
    assert isinstance(engine, ScriptedEngine)
    assert isinstance(engine, SessionResumer)
    assert engine.skill_directories() == (".agents/skills",)


async def test_a_conversation_of_three_turns_is_one_session(tmp_path: Path) -> None:
    trial = ScriptedTrial(
        tmp_path,
        [
            {"turn": 1, "when": r"order (\d+)", "say": "Noted {{match.1}}."},
            {"turn": 2, "say": "{{turns.1.user}} -> {{turns.1.answer}}"},
            {"turn": 3, "say": "{{turns.2.user}}, turn {{turn}}"},
        ],
    )
    first = await trial.turn("order 66")
    assert response(first) == "Noted 66."
    assert first.session is not None
    assert first.session.id == trial.context.session_id
    assert first.session_verified is None
    second = await trial.turn("and?")
    assert response(second) == "order 66 -> Noted 66."
    third = await trial.turn("so?")
    assert response(third) == "and?, turn 3"
    assert [second.session_verified, third.session_verified] == [True, True]
    prints = [outcome.fingerprint for outcome in (first, second, third)]
    assert [found.messages for found in prints if found] == [1, 2, 3]
    assert prints[2] is not None
    assert prints[2].prefix_bytes == trial.session_path.stat().st_size


async def test_what_was_done_is_in_the_outcome(tmp_path: Path) -> None:
    steps = [
        {"say": "Let me see."},
        {"write": {"path": "a.txt", "content": "A"}},
        {"read": "a.txt"},
        {"run": "cat a.txt nowhere"},
        {"skill": "keeper"},
    ]
    trial = ScriptedTrial(tmp_path, [{"steps": steps, "say": "Done."}])
    outcome = await trial.turn("go")
    assert response(outcome) == "Done."
    assert [item.type for item in outcome.items] == [
        "message",
        *(["tool_call", "tool_result"] * 4),
        "message",
    ]
    calls = [item.tool_call for item in outcome.items if item.tool_call]
    assert [(call.kind, call.name, call.arguments) for call in calls] == [
        ("write", "write_file", {"path": "a.txt", "content": "A"}),
        ("read", "read_file", {"path": "a.txt"}),
        ("shell", "shell", {"command": "cat a.txt nowhere"}),
        ("skill", "skill", {"skill": "keeper"}),
    ]
    results = [item.tool_result for item in outcome.items if item.tool_result]
    assert [result.call_id for result in results] == [call.id for call in calls]
    assert [result.status for result in results] == ["success", "success", "error", "error"]
    assert "shell cat a.txt nowhere" in trial.progress
    assert outcome.unknown_events == 0
    assert outcome.version == "1.0"
    assert (trial.workspace / "a.txt").read_text() == "A"


async def test_tokens_are_the_turn_s_own_and_cost_by_the_profile_s_prices(tmp_path: Path) -> None:
    usage = {"input_tokens": 1_000_000, "cached_input_tokens": 500_000, "output_tokens": 200_000}
    prices = {"tiny": {"input": 2.0, "cached_input": 1.0, "output": 10.0}}
    trial = ScriptedTrial(tmp_path, [{"say": "x", "usage": usage}], model="tiny", prices=prices)
    await trial.turn("one")
    outcome = await trial.turn("two")
    assert outcome.usage is not None
    assert outcome.usage.model_dump(exclude_none=True) == {**usage, "requests": 1}
    assert outcome.model == "tiny"
    assert outcome.cost_usd == pytest.approx(1.0 + 0.5 + 2.0)


async def test_without_prices_the_cost_is_unknown(tmp_path: Path) -> None:
    outcome = await ScriptedTrial(tmp_path, [{"say": "x"}]).turn("one")
    assert outcome.cost_usd is None
    assert outcome.usage is not None
    assert (outcome.usage.input_tokens, outcome.usage.output_tokens) == (100, 20)


async def test_raw_streams_and_the_process_are_kept(tmp_path: Path) -> None:
    trial = ScriptedTrial(tmp_path, [{"say": "x"}])
    await trial.turn("one")
    outcome = await trial.turn("two")
    raw = trial.context.raw_dir
    assert '"turn": 1' in (raw / "turn-01.stdout.jsonl").read_text()
    assert '"turn": 2' in (raw / "turn-02.stdout.jsonl").read_text()
    assert (raw / "turn-02.stderr.txt").read_text() == ""
    assert outcome.process is not None
    assert outcome.process.argv[-1] == f"--resume={trial.context.session_id}"
    assert (outcome.process.exit_code, outcome.process.ended_by) == (0, "exit")


async def test_system_prompt_and_message_may_be_long_and_strange(tmp_path: Path) -> None:
    long = "--x \r\n🙂" + "y" * 200_000
    trial = ScriptedTrial(tmp_path, [{"say": "{{system}}|{{user}}"}])
    assert response(await trial.turn(long, system=long)) == f"{long}|{long}"


async def test_permission_is_the_same_on_every_turn(tmp_path: Path) -> None:
    trial = ScriptedTrial(tmp_path, [{"steps": [{"run": "touch x"}]}], permission="read_only")
    for prompt in ("one", "two"):
        outcome = await trial.turn(prompt)
        (result,) = [item.tool_result for item in outcome.items if item.tool_result]
        assert result.status == "error"
        assert "not permitted" in result.content
    assert not (trial.workspace / "x").exists()


async def test_a_clean_home_and_a_short_environment(tmp_path: Path) -> None:
    user = {"PATH": "/usr/bin:/bin", "HOME": "/users/own", "LEAK": "me"}
    step = {"run": 'echo "$HOME $LEAK $ADDED"'}
    replies = [{"steps": [step], "say": "{{output}}"}]
    clean = ScriptedTrial(tmp_path / "a", replies, environment=user, extra_env={"ADDED": "mine"})
    assert response(await clean.turn("x")) == f"{clean.context.home}/home  mine"
    shared = ScriptedTrial(tmp_path / "b", replies, environment=user, isolation="shared")
    assert response(await shared.turn("x")).strip() == "/users/own me"


async def test_what_the_run_hides_and_spares_is_hidden_and_spared_here(tmp_path: Path) -> None:
    """Else a check would look in vain for a word that records are made of."""
    variables = {**os.environ, "DB_PASSWORD": "walrus"}
    of_run = Secrets({"JUDGE_KEY": "sk-of-the-judge"}).also_of(variables).sparing(["/the-walrus"])
    trial = ScriptedTrial(tmp_path, [{"say": "walrus sk-of-the-judge"}], environment=variables)
    trial.context = replace(trial.context, secrets=of_run)

    assert response(await trial.turn("go")) == "walrus ***JUDGE_KEY***"


async def test_credentials_are_masked_wherever_they_turn_up(tmp_path: Path) -> None:
    trial = ScriptedTrial(
        tmp_path,
        [{"steps": [{"run": "echo $SOME_API_KEY; echo $SOME_API_KEY >&2"}], "say": "{{output}}"}],
        extra_env={"SOME_API_KEY": "sk-very-secret"},
    )
    outcome = await trial.turn("x")
    assert "***SOME_API_KEY***" in response(outcome)
    raw = "".join(path.read_text() for path in trial.context.raw_dir.iterdir())
    assert "sk-very-secret" not in raw + repr(outcome)


async def test_eight_trials_at_once_do_not_mix(tmp_path: Path) -> None:
    replies = [
        {"turn": 1, "steps": [{"write": {"path": "me.txt", "content": "{{user}}"}}], "say": "ok"},
        {"turn": 2, "steps": [{"delay": 0.05}], "say": "{{turns.1.user}} {{user}}"},
        {"turn": 3, "steps": [{"read": "me.txt"}], "say": "{{output}} {{turns.2.answer}}"},
    ]
    answers: dict[int, str] = {}

    async def hold(number: int) -> None:
        trial = ScriptedTrial(tmp_path / str(number), replies)
        await trial.turn(f"i am {number}")
        await trial.turn("b")
        outcome = await trial.turn("c")
        answers[number] = response(outcome)
        assert outcome.session_verified
        assert trial.processes() == []

    async with anyio.create_task_group() as trials:
        for number in range(8):
            trials.start_soon(hold, number)
    assert answers == {n: f"i am {n} i am {n} b" for n in range(8)}


async def test_trials_draw_different_lots(tmp_path: Path) -> None:
    replies: list[dict[str, Any]] = [{"probability": 0.5, "say": "heads"}, {"say": "tails"}]
    answers = [
        response(await ScriptedTrial(tmp_path / str(seed), replies, seed=seed).turn("toss"))
        for seed in range(12)
    ]
    assert set(answers) == {"heads", "tails"}


async def test_it_is_always_available(tmp_path: Path) -> None:
    found = await ScriptedEngine().check(Profile(engine="scripted"), {})
    assert (found.found, found.version, found.problem) == (True, "1.0", None)
    missing = Profile(engine="scripted", command=[str(tmp_path / "gone")])
    found = await ScriptedEngine().check(missing, {})
    assert not found.found
    assert found.problem is not None
    assert found.problem.kind == "engine_not_found"


async def test_the_profile_may_name_another_command(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "skillup.engines.scripted_agent"]
    trial = ScriptedTrial(
        tmp_path,
        [{"say": "{{skills}}"}],
        command=command,
        args=["--skills-dir", "mine"],
        env={},
        extra_env={"PYTHONPATH": str(Path(__file__).parents[2])},
    )
    (trial.workspace / "mine" / "keeper").mkdir(parents=True)
    (trial.workspace / "mine" / "keeper" / "SKILL.md").touch()
    assert response(await trial.turn("x")) == "keeper"


def test_the_shipped_profile_is_what_holds_without_it() -> None:
    text = (Path(__file__).parents[2] / "engines" / "scripted.yaml").read_text()
    assert Profile.model_validate(yaml.safe_load(text)) == Profile(engine="scripted")
