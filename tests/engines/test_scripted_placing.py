"""Sessions of the scripted agent that are seeded with a history, or forked."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from skillup.engines.base import HistorySeeder, SessionForker, SessionRef, TurnRequest
from skillup.engines.scripted_agent import VERSION
from skillup.schema.record import HistoryItem
from tests.support.scripted_trial import ScriptedTrial

ASKED: list[dict[str, Any]] = [
    {"role": "user", "content": "apply"},
    {"role": "assistant", "content": "Let me look.", "tool_calls": [
        {"id": "c1", "name": "", "kind": "read", "arguments": {"path": "f"}}]},
    {"role": "tool", "tool_result": {"call_id": "c1", "status": "success", "content": "text"}},
    {"role": "assistant", "content": "Which stage?"},
    {"role": "user", "content": "seed"},
    {"role": "assistant", "content": "And where?"},
]  # fmt: skip


def history(items: list[dict[str, Any]]) -> list[HistoryItem]:
    return [HistoryItem.model_validate(item) for item in items]


def test_the_engine_says_what_it_can(tmp_path: Path) -> None:
    engine = ScriptedTrial(tmp_path, None).engine
    assert isinstance(engine, HistorySeeder)
    assert isinstance(engine, SessionForker)
    assert engine.seeding_problem(VERSION) is None
    for version in (None, "0.9"):
        assert "cannot be written" in (engine.seeding_problem(version) or "")


async def _seeded_turn(trial: ScriptedTrial, items: list[dict[str, Any]], prompt: str) -> Any:
    placed = await trial.engine.seed(history(items), trial.context)
    assert placed.error is None
    assert placed.session is not None
    turn = TurnRequest(number=1, prompt=prompt, previous=placed.fingerprint)
    return await trial.engine.resume(placed.session, turn, trial.context)


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("say", "answer"),
    [
        ("{{history.1.user}} {{history.1.answer}}", "apply Which stage?"),
        ("{{history.2.user}} {{history.2.answer}}", "seed And where?"),
        ("{{turn}}", "1"),
    ],
)
async def test_a_seeded_history_is_known_and_counts_no_turns(
    tmp_path: Path, say: str, answer: str
) -> None:
    trial = ScriptedTrial(tmp_path, [{"turn": 1, "say": say}])
    outcome = await _seeded_turn(trial, ASKED, "Berlin")
    assert (outcome.error, outcome.response) == (None, answer)
    assert outcome.session_verified is True


@pytest.mark.anyio
async def test_a_history_that_begins_with_an_answer_has_no_question_for_it(tmp_path: Path) -> None:
    trial = ScriptedTrial(tmp_path, [{"say": "{{history.1.user}}"}])
    outcome = await _seeded_turn(trial, [ASKED[3], *ASKED[4:]], "Berlin")
    assert outcome.response == "seed"


@pytest.mark.anyio
async def test_what_the_history_does_not_hold_is_an_error_of_the_script(tmp_path: Path) -> None:
    trial = ScriptedTrial(tmp_path, [{"say": "{{history.3.user}}"}])
    outcome = await _seeded_turn(trial, ASKED, "Berlin")
    assert "2 messages of a history" in outcome.error.message


@pytest.mark.anyio
async def test_a_fork_goes_on_from_all_that_was_said_and_leaves_its_parent_alone(
    tmp_path: Path,
) -> None:
    replies = [
        {"turn": 1, "say": "in {{output}}", "steps": [{"run": "pwd"}]},
        {"turn": 2, "say": "{{turns.1.answer}}; {{user}}"},
    ]
    parent = ScriptedTrial(tmp_path / "parent", replies)
    child = ScriptedTrial(tmp_path / "child", replies)
    first = await parent.turn("where?")
    before = parent.session_path.read_bytes()
    session = SessionRef(parent.context.session_id)
    placed = await parent.engine.fork(session, parent.context, child.context)
    assert placed.session == SessionRef(child.context.session_id)
    turn = TurnRequest(number=2, prompt="go on", previous=placed.fingerprint)
    outcome = await child.engine.resume(placed.session, turn, child.context)
    assert first.response == f"in {parent.workspace}"
    assert (outcome.error, outcome.response) == (None, f"in {child.workspace}; go on")
    assert outcome.session_verified is True
    assert parent.session_path.read_bytes() == before


@pytest.mark.anyio
@pytest.mark.parametrize(
    "content", [None, b"", b"{", b'{"type": "session", "agent_version": "9"}\n']
)
async def test_what_is_no_session_cannot_be_forked(tmp_path: Path, content: bytes | None) -> None:
    parent, child = ScriptedTrial(tmp_path / "a", None), ScriptedTrial(tmp_path / "b", None)
    if content is not None:
        parent.session_path.parent.mkdir(parents=True)
        parent.session_path.write_bytes(content)
    session = SessionRef(parent.context.session_id)
    placed = await parent.engine.fork(session, parent.context, child.context)
    assert placed.session is None
    assert placed.error is not None
    assert placed.error.kind == "session_lost"
