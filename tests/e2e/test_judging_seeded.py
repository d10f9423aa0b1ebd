"""Sessions that a real CLI went on with from a history are judged from the first live turn on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import anyio
import pytest

from skillup.engines.base import EngineTurn, HistorySeeder
from skillup.schema.case import Case
from skillup.sessions.readers import detect_format
from skillup.sessions.record import read_session, record_of_session
from skillup.trial.history import past_of
from tests.support.held_turns import Conversation
from tests.support.lab_engines import claude_conversation, codex_conversation, file_of
from tests.support.model_server import ModelServer

pytestmark = pytest.mark.e2e
CASE = {
    "id": "c",
    "input": {
        "history": [
            {"role": "user", "content": "I want to apply."},
            {"role": "assistant", "content": "I look.", "tool_calls": [{"kind": "shell"}]},
            {"role": "tool", "content": "nothing"},
            {"role": "assistant", "content": "Which stage?"},
        ],
        "turns": ["Seed.", "Twelve."],
    },
    "assertions": [{"contains": "x"}],
}
Begin = Callable[[Path, Path, str], Conversation]


@pytest.mark.parametrize(
    ("cli", "begin"),
    [("claude_cli", claude_conversation), ("codex_cli", codex_conversation)],
    ids=["claude", "codex"],
)
def test_the_history_is_no_turn_of_the_session(
    request: pytest.FixtureRequest,
    tmp_path: Path,
    model_server: Callable[..., ModelServer],
    cli: str,
    begin: Begin,
) -> None:
    case = Case.model_validate(CASE)
    conversation = begin(request.getfixturevalue(cli), tmp_path, model_server().url)
    engine, trial = conversation.engine, conversation.trial
    assert isinstance(engine, HistorySeeder)
    version = anyio.run(engine.check, trial.profile, trial.environment).version
    conversation.trial = trial = replace(trial, version=version)
    placed = anyio.run(engine.seed, past_of(case.input).items, trial)
    conversation.outcomes.append(EngineTurn(placed.session, fingerprint=placed.fingerprint))
    said = [conversation.say(text).response for text in ("Seed.", "Twelve.")]

    path = file_of(conversation)
    format_ = detect_format(path)
    assert format_ is not None
    record = record_of_session(read_session(path, format_), case, "s")

    assert [(turn.content, turn.response) for turn in record.turns] == [
        ("Seed.", said[0]),
        ("Twelve.", said[1]),
    ]
    assert record.notes == []
    # The seeded turns have none: whatever is counted was counted for the right turn.
    assert all(turn.usage is not None and turn.usage.input_tokens for turn in record.turns)
