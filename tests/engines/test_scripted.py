"""The scripted engine: turns in real processes, resumed sessions, faults, histories and forks."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from skillup.engines.base import EngineTurn, TurnRequest
from skillup.engines.scripted.engine import ScriptedEngine
from skillup.engines.scripted_agent import VERSION
from skillup.redaction.secrets import Secrets
from skillup.schema.profile import Profile
from skillup.schema.record import HistoryItem
from tests.support.scripted_trial import ScriptedTrial

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


def response(outcome: EngineTurn) -> str:
    assert outcome.error is None, outcome.error
    return outcome.response


async def test_a_conversation_of_three_turns_is_one_session(tmp_path: Path) -> None:
    usage = {"input_tokens": 1_000_000, "cached_input_tokens": 500_000, "output_tokens": 200_000}
    trial = ScriptedTrial(
        tmp_path,
        [
            {"turn": 1, "when": r"order (\d+)", "say": "Noted {{match.1}}."},
            {"turn": 2, "say": "{{turns.1.user}} -> {{turns.1.answer}}", "usage": usage},
            {"turn": 3, "say": "{{turns.2.user}}, turn {{turn}}"},
        ],
        model="tiny",
        prices={"tiny": {"input": 2.0, "cached_input": 1.0, "output": 10.0}},
    )
    outcomes = [await trial.turn(prompt) for prompt in ("order 66", "and?", "so?")]
    first, second, third = outcomes
    assert list(map(response, outcomes)) == ["Noted 66.", "order 66 -> Noted 66.", "and?, turn 3"]
    assert {turn.session for turn in outcomes} == {trial.context.session_id}
    assert [turn.session_verified for turn in outcomes] == [None, True, True]
    assert [turn.fingerprint.messages for turn in outcomes if turn.fingerprint] == [1, 2, 3]
    assert third.fingerprint
    assert third.fingerprint.prefix_bytes == trial.session_path.stat().st_size
    assert second.usage
    assert second.usage.model_dump(exclude_none=True) == {**usage, "requests": 1}
    assert second.cost_usd == pytest.approx(1.0 + 0.5 + 2.0)
    assert first.usage
    assert (first.usage.input_tokens, first.usage.output_tokens) == (100, 20)
    raw = trial.context.raw_dir
    assert '"turn": 1' in (raw / "turn-01.stdout.jsonl").read_text()
    assert '"turn": 2' in (raw / "turn-02.stdout.jsonl").read_text()
    assert (raw / "turn-02.stderr.txt").read_text() == ""
    assert second.process
    assert second.process.argv[-1] == f"--resume={trial.context.session_id}"
    assert (second.process.exit_code, second.process.ended_by) == (0, "exit")


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
    kinds = [item.type for item in outcome.items]
    assert kinds == ["message", *(["tool_call", "tool_result"] * 4), "message"]
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
    assert (outcome.unknown_events, outcome.version, outcome.cost_usd) == (0, VERSION, None)
    assert (trial.workspace / "a.txt").read_text() == "A"


async def test_long_texts_permission_and_step_limit_reach_the_agent(tmp_path: Path) -> None:
    long = "--x \r\n🙂" + "y" * 200_000
    steps = [{"run": "touch x"}]
    trial = ScriptedTrial(
        tmp_path, [{"steps": steps, "say": "{{system}}|{{user}}"}], permission="read_only"
    )
    for prompt in ("one", long):
        outcome = await trial.turn(prompt, system=long)
        assert response(outcome) == f"{long}|{prompt}"
        (result,) = [item.tool_result for item in outcome.items if item.tool_result]
        assert (result.status, "not permitted" in result.content) == ("error", True)
    assert not (trial.workspace / "x").exists()
    limited = await trial.turn("three", max_steps=1)
    assert limited.error
    assert limited.error.kind == "max_turns"


async def test_credentials_are_masked_and_what_the_run_spares_is_not(tmp_path: Path) -> None:
    """Else a check would look in vain for a word that records are made of."""
    variables = {**os.environ, "DB_PASSWORD": "walrus"}
    of_run = Secrets({"JUDGE_KEY": "sk-of-the-judge"}).also_of(variables).sparing(["/the-walrus"])
    say = "walrus sk-of-the-judge {{output}}"
    run = {"run": "echo $SOME_API_KEY; echo $SOME_API_KEY >&2"}
    trial = ScriptedTrial(
        tmp_path,
        [{"steps": [run], "say": say}],
        environment=variables,
        extra_env={"SOME_API_KEY": "sk-very-secret"},
    )
    trial.context = replace(trial.context, secrets=of_run)
    outcome = await trial.turn("go")
    assert response(outcome).startswith("walrus ***JUDGE_KEY*** ***SOME_API_KEY***")
    raw = "".join(path.read_text() for path in trial.context.raw_dir.iterdir())
    assert "sk-very-secret" not in raw + repr(outcome)


async def test_seeds_and_attempts_decide_what_is_left_to_chance(tmp_path: Path) -> None:
    replies: list[dict[str, Any]] = [{"probability": 0.5, "say": "heads"}, {"say": "tails"}]
    trials = [ScriptedTrial(tmp_path / f"s{seed}", replies, seed=seed) for seed in range(6)]
    assert {response(await trial.turn("toss")) for trial in trials} == {"heads", "tails"}
    often = [{"say": "hi", "misbehave": {"error": "auth", "probability": 0.5}}]
    trials = [ScriptedTrial(tmp_path / f"f{seed}", often, seed=seed) for seed in range(6)]
    errors = [(await trial.turn("go")).error is not None for trial in trials]
    assert 0 < sum(errors) < 6
    twice = [{"say": "hi", "misbehave": {"error": "overloaded", "times": 2}}]
    trials = [ScriptedTrial(tmp_path / f"a{n}", twice, attempt=n) for n in (1, 2, 3)]
    found = [(await trial.turn("go")).error for trial in trials]
    assert [error and error.kind for error in found] == ["overloaded", "overloaded", None]


async def test_whether_it_is_there_and_another_command(tmp_path: Path) -> None:
    found = await ScriptedEngine().check(Profile(engine="scripted"), {})
    assert (found.found, found.version, found.problem) == (True, VERSION, None)
    gone = Profile(engine="scripted", command=[str(tmp_path / "gone")])
    missing = await ScriptedEngine().check(gone, {})
    assert not missing.found
    assert missing.problem
    assert missing.problem.kind == "engine_not_found"
    trial = ScriptedTrial(
        tmp_path / "t",
        [{"say": "{{skills}}"}],
        command=[sys.executable, "-m", "skillup.engines.scripted_agent"],
        extra_env={"PYTHONPATH": str(Path(__file__).parents[2])},
    )
    (trial.workspace / ".claude/skills/keeper").mkdir(parents=True)
    (trial.workspace / ".claude/skills/keeper/SKILL.md").touch()
    assert response(await trial.turn("x")) == "keeper"
    shipped = (Path(__file__).parents[2] / "engines" / "scripted.yaml").read_text()
    assert Profile.model_validate(yaml.safe_load(shipped)) == Profile(engine="scripted")


def misbehaving(base: Path, *, turn: int = 1, **faults: Any) -> ScriptedTrial:
    return ScriptedTrial(base, [{"turn": turn, "say": "hi", "misbehave": faults}, {"say": "well"}])


HANGS = {
    "steps": [{"run": "(sleep 600 &) ; (setsid sleep 600 &) ; true"}],
    "misbehave": {"hang": True, "ignore_signals": True, "orphan": True},
}
SAYS = {"say": "x"}


@pytest.mark.parametrize(
    ("replies", "profile", "kind", "words"),
    [
        *(
            ([{**SAYS, "misbehave": {"error": kind}}], {}, kind, "scripted: ")
            for kind in ("auth", "model_error")
        ),
        ([{**SAYS, "misbehave": {"exit_code": 7}}], {}, "crash", "exit code 7"),
        ([{**SAYS, "misbehave": {"exit_code": -9}}], {}, "crash", "signal 9"),
        ([{**SAYS, "misbehave": {"no_result": True}}], {}, "protocol", ""),
        ([{**SAYS, "misbehave": {"garbage": True}}], {}, "protocol", ""),
        ([HANGS], {}, "timeout", ""),
        ([{**SAYS, "misbehave": {"new_session": True}}], {}, "session_mismatch", ""),
        ([{**SAYS, "turn": 2}], {}, "model_error", 'turn 1: "go"; correct'),
        (None, {}, "engine_not_usable", "`scripted:` section"),
        ([SAYS], {"command": ["no-such-agent"]}, "engine_not_found", "no-such-agent"),
        ([SAYS], {"args": ["--nonsense"]}, "crash", "--nonsense"),
    ],
)
async def test_every_fault_is_an_error_of_its_kind_and_leaves_nothing(
    tmp_path: Path, replies: Any, profile: dict[str, Any], kind: str, words: str
) -> None:
    trial = ScriptedTrial(tmp_path, replies, **profile)
    waits = kind == "timeout"
    outcome = await trial.turn("go", **({"timeout_seconds": 0.8} if waits else {}))
    assert outcome.error, outcome
    assert (outcome.error.kind, outcome.response) == (kind, "")
    assert words in outcome.error.message
    if kind == "protocol":
        assert "last lines of stdout" in outcome.error.evidence
    assert trial.processes() == []


async def test_an_orphan_and_a_flood_do_not_cost_the_answer(tmp_path: Path) -> None:
    trial = misbehaving(tmp_path, orphan=True, flood_bytes=3_000_001)
    outcome = await trial.turn("go")
    assert (outcome.error, outcome.response, outcome.unknown_events) == (None, "hi", 1)
    assert outcome.process
    assert outcome.process.leftover_processes == 1
    assert trial.processes() == []


@pytest.mark.parametrize("how", ["forgotten", "unknown then", "other", "edited", "added to"])
async def test_a_session_that_does_not_hold_the_earlier_turns_is_not_believed(
    tmp_path: Path, how: str
) -> None:
    """S8: a message that somebody added between two turns was `session_verified: true`."""
    faults: dict[str, Any] = {"new_session": True} if how == "other" else {"forget": True}
    say = "{{turns.1.user}}" if how == "unknown then" else "hi"
    is_agent = how in ("forgotten", "unknown then", "other")
    second = {"say": say, "turn": 2, "misbehave": faults if is_agent else {}}
    forgets = {"say": say, "misbehave": faults} if how == "unknown then" else second
    trial = ScriptedTrial(tmp_path, [{"turn": 1, "say": "one"}, forgets, {"say": "x"}])
    await trial.turn("one")
    text = trial.session_path.read_text()
    if how == "edited":
        trial.session_path.write_text(text.replace('"one"', '"eno"'))
    elif how == "added to":
        forged = json.dumps({"type": "user", "text": "forged"}) + "\n"
        trial.session_path.write_text(text + forged)

    outcome = await trial.turn("go")

    assert outcome.error
    mismatch = how in ("other", "added to")
    assert outcome.error.kind == ("session_mismatch" if mismatch else "session_lost")
    assert (outcome.session_verified, outcome.response) == (False, "")
    assert (outcome.process is None) is not is_agent
    if how == "edited":
        assert f"{trial.session_path}: it held {len(text)} bytes" in outcome.error.evidence


ASKED: list[dict[str, Any]] = [
    {"role": "user", "content": "apply"},
    {"role": "assistant", "content": "Let me look.", "tool_calls": [
        {"id": "c1", "name": "", "kind": "read", "arguments": {"path": "f"}}]},
    {"role": "tool", "tool_result": {"call_id": "c1", "status": "success", "content": "text"}},
    {"role": "assistant", "content": "Which stage?"},
    {"role": "user", "content": "seed"},
    {"role": "assistant", "content": "And where?"},
]  # fmt: skip
BOTH = "{{history.1.user}} {{history.1.answer}}, {{history.2.user}} {{history.2.answer}}, {{turn}}"


@pytest.mark.parametrize(
    ("history", "say", "answer"),
    [
        (ASKED, BOTH, "apply Which stage?, seed And where?, 1"),
        (ASKED[3:], "{{history.1.user}}", "seed"),  # an answer without a question is none
        (ASKED, "{{history.3.user}}", None),
    ],
)
async def test_a_seeded_history_is_known_and_counts_no_turns(
    tmp_path: Path, history: list[dict[str, Any]], say: str, answer: str | None
) -> None:
    trial = ScriptedTrial(tmp_path, [{"turn": 1, "say": say}])
    engine = trial.engine
    assert engine.seeding_problem(VERSION) is None
    assert all("can be written for" in (engine.seeding_problem(v) or "") for v in (None, "0.9"))
    created = await engine.seed([HistoryItem.model_validate(one) for one in history], trial.context)
    assert (created.error, created.session) == (None, trial.context.session_id)
    assert created.session
    turn = TurnRequest(number=1, prompt="Berlin", previous=created.fingerprint)
    outcome = await engine.resume(created.session, turn, trial.context)
    if answer is None:
        assert outcome.error
        assert "{{history.3.user}} has no value" in outcome.error.message
    else:
        assert response(outcome) == answer
        assert outcome.session_verified is True


async def test_a_fork_goes_on_from_all_and_leaves_its_parent_alone(tmp_path: Path) -> None:
    replies = [
        {"turn": 1, "say": "in {{output}}", "steps": [{"run": "pwd"}]},
        {"turn": 2, "say": "{{turns.1.answer}}; {{user}}"},
    ]
    parent, child = (ScriptedTrial(tmp_path / name, replies) for name in ("parent", "child"))
    session = parent.context.session_id
    for content in (None, b"", b"{", b'{"type": "session", "agent_version": "9"}\n'):
        if content is not None:
            parent.session_path.parent.mkdir(parents=True, exist_ok=True)
            parent.session_path.write_bytes(content)
        none = await parent.engine.fork(session, parent.context, child.context)
        assert (none.session, none.error and none.error.kind) == (None, "session_lost")
    parent.session_path.unlink()
    first = await parent.turn("where?")
    before = parent.session_path.read_bytes()
    created = await parent.engine.fork(session, parent.context, child.context)
    assert created.session == child.context.session_id
    turn = TurnRequest(number=2, prompt="go on", previous=created.fingerprint)
    outcome = await child.engine.resume(created.session, turn, child.context)
    assert first.response == f"in {parent.workspace}"
    assert response(outcome) == f"in {child.workspace}; go on"
    assert outcome.session_verified is True
    assert parent.session_path.read_bytes() == before
