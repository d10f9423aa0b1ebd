"""A session that was seeded with the case's history is judged from its first live turn on."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from skillup.engines.claude_code.session import history_session
from skillup.engines.codex.seeding import rollout_rows
from skillup.judges import grade_record
from skillup.schema.case import Case
from skillup.schema.record import HistoryItem, Record
from skillup.sessions.readers import detect_format
from skillup.sessions.record import read_session, record_of_session
from skillup.trial.history import past_of
from tests.support.session_files import TIME, claude_row, done, message, text, write_rows

SESSION = "5d6a3c4e-0000-4000-8000-000000000000"
PASTS: dict[str, list[dict[str, Any]]] = {
    "answered": [
        {"role": "user", "content": "I want to apply."},
        {"role": "assistant", "content": "Which  stage?"},
        {"role": "user", "content": "Seed."},
        {"role": "assistant", "content": "How many are you?"},
    ],
    "with calls": [
        {"role": "user", "content": "Look."},
        {"role": "assistant", "content": "I look.", "tool_calls": [{"kind": "shell"}]},
        {"role": "tool", "content": "a.txt"},
        {"role": "assistant", "content": "One file."},
    ],
    "begun by the assistant": [
        {"role": "assistant", "content": "Which stage?"},
        {"role": "user", "content": "Seed."},
        {"role": "assistant", "content": "How many?"},
    ],
    "cut off and repeated": [
        {"role": "user", "content": "Seed."},
        {"role": "assistant", "content": "How many?"},
        {"role": "assistant", "content": "How many?"},
        {"role": "user", "content": "Wait."},
    ],
}


def case(past: list[dict[str, Any]]) -> Case:
    turns = [{"content": "Twelve.", "assertions": [{"contains": "budget"}]}, {"content": "Ten."}]
    return Case.model_validate(
        {"id": "c", "input": {"history": past, "turns": turns}, "assertions": [{"contains": "end"}]}
    )


def claude_rows(history: Sequence[HistoryItem]) -> list[Any]:
    past = history_session(history, SESSION, Path("/w"), "2.1.197")
    rows = [json.loads(line) for line in past.lines()]
    return [
        *rows,
        claude_row("user", "Twelve.", "n1", rows[-1]["uuid"]),
        claude_row("assistant", text("And your budget?"), "n2", "n1"),
        claude_row("user", "Ten.", "n3", "n2"),
        claude_row("assistant", text("The end."), "n4", "n3"),
    ]


def codex_rows(history: Sequence[HistoryItem]) -> list[Any]:
    past = rollout_rows(history, thread_id=SESSION, timestamp=TIME, cwd="/w", version="0.169.0")
    return [
        *past,
        *(done("UserMessage", content=text("Twelve.")), message("user", "Twelve.")),
        *(done("AgentMessage", content=text("And your budget?")),),
        message("assistant", "And your budget?"),
        *(done("UserMessage", content=text("Ten.")), message("user", "Ten.")),
        *(done("AgentMessage", content=text("The end.")), message("assistant", "The end.")),
    ]


def judged(path: Path, wanted: Case) -> Record:
    format_ = detect_format(path)
    assert format_ is not None
    return record_of_session(read_session(path, format_), wanted, "suite")


@pytest.mark.parametrize("rows", [claude_rows, codex_rows])
@pytest.mark.parametrize("name", PASTS)
def test_turn_1_of_the_case_is_the_first_live_turn(
    tmp_path: Path, name: str, rows: Callable[[Sequence[HistoryItem]], list[Any]]
) -> None:
    wanted = case(PASTS[name])
    history = past_of(wanted.input).items
    path = write_rows(tmp_path / "s.jsonl", rows(history))

    record = judged(path, wanted)

    assert [turn.content for turn in record.turns] == ["Twelve.", "Ten."]
    assert record.history == list(history)
    assert record.notes == []
    assert grade_record(record, lambda _: None).status == "PASS"


def test_a_session_that_begins_otherwise_is_judged_from_its_first_turn_and_that_is_said(
    tmp_path: Path,
) -> None:
    wanted = case(PASTS["answered"])
    other = past_of(case(PASTS["with calls"]).input).items
    path = write_rows(tmp_path / "s.jsonl", claude_rows(other))

    record = judged(path, wanted)

    assert [turn.content for turn in record.turns] == ["Look.", "Twelve."]
    assert record.history == []
    assert record.notes[0] == (
        "the case begins with a history that the session does not begin with"
    )
