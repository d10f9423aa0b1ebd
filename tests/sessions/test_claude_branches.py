"""Which rows of a Claude Code session are the conversation, and which were gone back from."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.support.session_files import claude_row, read, text, write_rows


def _left(tmp_path: Path, *rows: dict[str, Any]) -> list[int]:
    entries, _ = read(write_rows(tmp_path / "s.jsonl", rows))
    return [entry.line for entry in entries if entry.left]


def _call(uuid: str, parent: str, message_id: str = "m1") -> dict[str, Any]:
    block = {"type": "tool_use", "id": f"call_{uuid}", "name": "Bash", "input": {}}
    row = claude_row("assistant", [block], uuid, parent)
    row["message"]["id"] = message_id
    return row


def _result(uuid: str, parent: str) -> dict[str, Any]:
    block = {"type": "tool_result", "tool_use_id": f"call_{parent}", "content": "ok"}
    return claude_row("user", [block], uuid, parent)


def test_a_straight_conversation_has_no_branches(tmp_path: Path) -> None:
    rows = [claude_row("user", "a", "1", None), claude_row("assistant", text("b"), "2", "1")]
    assert _left(tmp_path, *rows) == []


def test_after_going_back_the_branch_of_the_last_message_is_the_conversation(
    tmp_path: Path,
) -> None:
    entries, summary = read(
        write_rows(
            tmp_path / "s.jsonl",
            [
                claude_row("user", "start", "1", None),
                claude_row("assistant", text("ready"), "2", "1"),
                claude_row("user", "first try", "3", "2"),
                claude_row("assistant", text("first answer"), "4", "3"),
                claude_row("user", "and on", "5", "4"),
                claude_row("user", "second try", "6", "2"),
                claude_row("assistant", text("second answer"), "7", "6"),
            ],
        )
    )
    assert [(e.line, e.turn, e.left) for e in entries] == [
        (1, 1, False),
        (2, 1, False),
        (3, 2, True),
        (4, 2, True),
        (5, 3, True),
        (6, 2, False),
        (7, 2, False),
    ]
    assert (summary.turns, summary.left_entries) == (2, 3)


def test_going_back_to_the_first_message_leaves_all_that_was(tmp_path: Path) -> None:
    rows = [
        claude_row("user", "a", "1", None),
        claude_row("assistant", text("b"), "2", "1"),
        claude_row("user", "c", "3", None),
        claude_row("assistant", text("d"), "4", "3"),
    ]
    assert _left(tmp_path, *rows) == [1, 2]


def test_a_conversation_goes_on_after_a_compaction(tmp_path: Path) -> None:
    boundary = {"type": "system", "subtype": "compact_boundary", "sessionId": "s1"}
    rows = [
        claude_row("user", "a", "1", None),
        claude_row("assistant", text("b"), "2", "1"),
        {**boundary, "uuid": "3", "parentUuid": None, "logicalParentUuid": "2"},
        claude_row("user", "the story so far", "4", "3", isCompactSummary=True),
        claude_row("user", "c", "5", "4"),
    ]
    assert _left(tmp_path, *rows) == []


def test_results_of_tools_called_at_once_belong_to_it_in_any_order(tmp_path: Path) -> None:
    # Each result is a child of its call, so only one of them leads to the next message.
    first_last = [_result("5", "3"), _result("4", "2")]
    for results in (first_last, first_last[::-1]):
        rows = [
            claude_row("user", "a", "1", None),
            _call("2", "1"),
            _call("3", "2"),
            *results,
            claude_row("assistant", text("done"), "6", results[-1]["uuid"]),
        ]
        assert _left(tmp_path, *rows) == []


def test_an_answer_that_was_asked_for_again_is_left(tmp_path: Path) -> None:
    rows = [
        claude_row("user", "a", "1", None),
        claude_row("assistant", text("b"), "2", "1"),
        claude_row("assistant", text("c"), "3", "1"),
    ]
    assert _left(tmp_path, *rows) == [2]


def test_without_any_link_every_row_counts(tmp_path: Path) -> None:
    rows = [claude_row("user", word, word, None) for word in "abc"]
    assert _left(tmp_path, *rows) == []


def test_rows_without_a_known_parent_follow_the_row_before(tmp_path: Path) -> None:
    old = claude_row("user", "a", "1", None)
    del old["parentUuid"]
    rows = [
        old,
        claude_row("assistant", text("b"), "2", "not in this file"),
        claude_row("user", "c", "3", "2"),
    ]
    assert _left(tmp_path, *rows) == []


def test_a_row_that_is_its_own_parent_does_not_hang(tmp_path: Path) -> None:
    rows = [claude_row("user", "a", "x", "x"), claude_row("assistant", text("b"), "x", "x")]
    assert _left(tmp_path, *rows) == []


def test_rows_of_sub_agents_are_on_no_branch(tmp_path: Path) -> None:
    rows = [
        claude_row("user", "a", "1", None),
        claude_row("user", "look", "s1", None, isSidechain=True),
        claude_row("assistant", text("seen"), "s2", "s1", isSidechain=True),
        claude_row("assistant", text("b"), "2", "1"),
    ]
    assert _left(tmp_path, *rows) == []
