"""Which messages are one turn, which are none, and which are the case's own history."""

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
from skillup.sessions.readers import SessionTranscript, detect_format
from skillup.sessions.record import read_session, record_of_session
from skillup.sessions.turns import SessionTurns, turns_of
from skillup.trial.history import past_of
from tests.support.session_files import (
    TIME,
    claude_row,
    codex_meta,
    done,
    event,
    format_named,
    item,
    message,
    said,
    text,
    write_rows,
)

COMMAND = "<command-message>x</command-message><command-name>/{}</command-name>"
CALL = [{"type": "tool_use", "id": "c1", "name": "Bash", "input": {"command": "ls"}}]


def found_in(tmp_path: Path, rows: list[Any], format_: str) -> SessionTurns:
    path = write_rows(tmp_path / "session.jsonl", rows)
    return turns_of(SessionTranscript(path, format_named(format_)))


@pytest.mark.parametrize(
    ("spoken", "turns", "unanswered"),
    [
        (
            ["u one", "a first", "a second", "u two", "a third"],
            [("one", "second"), ("two", "third")],
            [],
        ),
        (["u one", "u two", "a yes"], [("one\n\ntwo", "yes")], []),
        (["u one", "u one", "a yes"], [("one", "yes")], []),
        (["u one", "a yes", "u two"], [("one", "yes")], ["two"]),
        (
            [
                "u " + COMMAND.format("clear"),
                "u <local-command-stdout>cleared</local-command-stdout>",
                "u one",
                "a yes",
            ],
            [("one", "yes")],
            ["/clear"],
        ),
        (
            ["u " + COMMAND.format("review") + "<command-args>the diff\n</command-args>", "a fine"],
            [("/review the diff", "fine")],
            [],
        ),
        (["u one", CALL, "u two"], [("one", "")], ["two"]),
        (
            ["u one", "a I begin", "u [Request interrupted by user]", "u two", "a yes"],
            [("one", "I begin"), ("two", "yes")],
            [],
        ),
    ],
)
def test_messages_and_answers_as_turns(
    tmp_path: Path, spoken: list[Any], turns: list[tuple[str, str]], unanswered: list[str]
) -> None:
    rows = []
    for number, one in enumerate(spoken):
        parent = str(number - 1) if number else None
        kind = "assistant" if one is CALL or one.startswith("a ") else "user"
        words = one if one is CALL else text(one[2:]) if kind == "assistant" else one[2:]
        rows.append(claude_row(kind, words, str(number), parent))
    found = found_in(tmp_path, rows, "claude_session")
    assert [(turn.content, turn.response) for turn in found.turns] == turns
    assert [turn.content for turn in found.unanswered] == unanswered
    assert found.turns[0].command == turns[0][0].startswith("/")
    assert found.turns[0].interrupted == (turns[0][1] == "I begin")


def test_turns_of_the_other_formats(tmp_path: Path) -> None:
    left = [
        claude_row("user", "one", "1", None),
        claude_row("assistant", text("first"), "2", "1"),
        claude_row("user", "again", "3", None),
        claude_row("assistant", text("second"), "4", "3"),
    ]
    answers = [
        [
            {"type": "turn.started"},
            {"type": "item.completed", "item": one},
            {"type": "turn.completed"},
        ]
        for one in (
            {"id": "1", "type": "agent_message", "text": "one"},
            {"id": "2", "type": "agent_message", "text": "two"},
        )
    ]
    recording = [{"type": "thread.started", "thread_id": "t"}, *answers[0], *answers[1]]
    rollout = [
        codex_meta(),
        message("user", "<environment_context>…</environment_context>"),
        *said("user", "one"),
        item("reasoning", summary=[{"type": "summary_text", "text": "hm"}]),
        *said("assistant", "yes"),
        event("token_count", info=None),
    ]
    for rows, format_, expected in (
        (left, "claude_session", [("again", "second")]),
        (recording, "codex_exec", [("", "one"), ("", "two")]),
        (rollout, "codex_rollout", [("one", "yes")]),
    ):
        found = found_in(tmp_path, rows, format_)
        assert [(turn.content, turn.response) for turn in found.turns] == expected
    assert [entry.type for entry in found.turns[0].items] == ["reasoning", "message"]


SESSION = "5d6a3c4e-0000-4000-8000-000000000000"
SEED = {"role": "user", "content": "Seed."}
HOW_MANY = {"role": "assistant", "content": "How many?"}
PASTS: dict[str, list[dict[str, Any]]] = {
    "answered": [
        {"role": "user", "content": "I want to apply."},
        {"role": "assistant", "content": "Which  stage?"},
        SEED,
        HOW_MANY,
    ],
    "with calls": [
        {"role": "user", "content": "Look."},
        {"role": "assistant", "content": "I look.", "tool_calls": [{"kind": "shell"}]},
        {"role": "tool", "content": "a.txt"},
        {"role": "assistant", "content": "One file."},
    ],
    "begun by the assistant": [{"role": "assistant", "content": "Which stage?"}, SEED, HOW_MANY],
    "cut off and repeated": [SEED, HOW_MANY, HOW_MANY, {"role": "user", "content": "Wait."}],
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
        done("AgentMessage", content=text("And your budget?")),
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
    record = judged(write_rows(tmp_path / "s.jsonl", rows(history)), wanted)
    assert [turn.content for turn in record.turns] == ["Twelve.", "Ten."]
    assert record.history == list(history)
    assert record.notes == []
    assert grade_record(record, lambda _: None).status == "PASS"


def test_a_session_that_begins_otherwise_is_judged_from_its_first_turn(tmp_path: Path) -> None:
    other = past_of(case(PASTS["with calls"]).input).items
    path = write_rows(tmp_path / "s.jsonl", claude_rows(other))
    record = judged(path, case(PASTS["answered"]))
    assert [turn.content for turn in record.turns] == ["Look.", "Twelve."]
    assert record.history == []
    assert record.notes[0] == "the case begins with a history that the session does not begin with"
