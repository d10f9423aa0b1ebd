"""Which messages are one turn, and which are none."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from skillup.sessions.record import RecordedSession, read_session
from tests.support.session_files import (
    claude_row,
    codex_meta,
    event,
    item,
    message,
    said,
    text,
    write_rows,
)

COMMAND = "<command-message>x</command-message><command-name>/{}</command-name>"
CALL = [{"type": "tool_use", "id": "c1", "name": "Bash", "input": {"command": "ls"}}]


def found_in(tmp_path: Path, rows: list[Any]) -> RecordedSession:
    return read_session(write_rows(tmp_path / "session.jsonl", rows))


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
    found = found_in(tmp_path, rows)
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
    rollout = [
        codex_meta(),
        message("user", "<environment_context>…</environment_context>"),
        *said("user", "one"),
        item("reasoning", summary=[{"type": "summary_text", "text": "hm"}]),
        *said("assistant", "yes"),
        event("token_count", info=None),
    ]
    for rows, expected in ((left, [("again", "second")]), (rollout, [("one", "yes")])):
        found = found_in(tmp_path, rows)
        assert [(turn.content, turn.response) for turn in found.turns] == expected
    assert [entry.type for entry in found.turns[0].items] == ["reasoning", "message"]
