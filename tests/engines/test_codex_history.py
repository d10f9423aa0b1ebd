"""A history as a rollout: what our own reader finds in it, and what Codex needs of its rows."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from skillup.engines.codex.created_sessions import rollout_rows, row_bytes
from skillup.engines.codex.session import is_user_message
from skillup.engines.codex.transcript import CodexTranscript
from skillup.engines.session_entries import EntryLog, SessionEntry
from skillup.schema.record import HistoryItem, ToolCall
from tests.support.pasts import Status, assistant, call, result, user

THREAD = "01a1fdc3-5a8b-7963-93be-65f4ca65f5d9"
NOW = "2026-01-02T03:04:05.678Z"


def rows_of(history: Sequence[HistoryItem], **changes: Any) -> list[dict[str, Any]]:
    given_: dict[str, Any] = {"thread_id": THREAD, "timestamp": NOW, "cwd": "/w", **changes}
    rows = list(rollout_rows(history, version="0.169.0", **given_))
    return [json.loads(row_bytes(row)) for row in rows]


def read(rows: Sequence[dict[str, Any]]) -> tuple[EntryLog, list[SessionEntry]]:
    log = EntryLog()
    transcript = CodexTranscript(log)
    entries = []
    for number, row in enumerate(rows, start=1):
        log.begin_line(number)
        transcript.feed(row)
        entries += log.take()
    return log, entries


def shell(call_id: str, command: str) -> ToolCall:
    return call(call_id, "shell", command=command)


words = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=40)
statuses: st.SearchStrategy[Status] = st.sampled_from(["success", "error", "unknown"])


@st.composite
def histories(draw: st.DrawFn) -> list[HistoryItem]:
    """As the trial layer hands them over: each call has a result behind it."""
    items: list[HistoryItem] = []
    for turn in range(draw(st.integers(1, 4))):
        items.append(user(draw(words)))
        commands = draw(st.lists(words, max_size=3))
        calls = [shell(f"call_{turn}_{n}", command) for n, command in enumerate(commands)]
        if calls:
            items.append(assistant(draw(words | st.just("")), *calls))
            answered = draw(st.permutations(calls))
            items += [result(each.id, draw(words), draw(statuses)) for each in answered]
        items.append(assistant(draw(words)))
    return items


@given(histories())
def test_any_history_is_read_as_it_was_given(history: list[HistoryItem]) -> None:
    log, entries = read(rows_of(history))

    expected: list[tuple[str, ...]] = []
    for item in history:
        if item.role != "tool" and item.content:
            expected.append((item.role, item.content))
        expected += [("tool_call", each.id, "shell") for each in item.tool_calls]
        if item.tool_result is not None:
            told = item.tool_result
            expected.append(("tool_result", told.call_id, told.status, told.content))
    assert [_as_expected(entry) for entry in entries if entry.role != "notice"] == expected
    assert log.summary.turns == sum(item.role == "user" for item in history)
    assert log.summary.unknown_lines == 0
    assert log.summary.session_id == THREAD


def _as_expected(entry: SessionEntry) -> tuple[str, ...]:
    if entry.tool_call is not None:
        return "tool_call", entry.tool_call.id, entry.tool_call.kind
    if entry.tool_result is not None:
        told = entry.tool_result
        return "tool_result", told.call_id, told.status, told.content
    return entry.role, entry.text


@given(histories())
def test_rows_are_numbered_and_each_user_message_is_counted_once(
    history: list[HistoryItem],
) -> None:
    rows = rows_of(history)

    assert [row["ordinal"] for row in rows] == list(range(len(rows)))
    assert {row["timestamp"] for row in rows} == {NOW}
    assert sum(map(is_user_message, rows)) == sum(item.role == "user" for item in history)
    assert rows[0]["type"] == "session_meta"
    assert all(row["type"] != "turn_context" for row in rows)


def test_the_provider_is_named_where_it_is_known() -> None:
    own = rows_of([user("hi")], provider="own")[0]["payload"]
    default = rows_of([user("hi")])[0]["payload"]

    assert own["model_provider"] == "own"
    assert "model_provider" not in default
    assert default["id"] == THREAD
    assert default["cwd"] == "/w"
    assert default["cli_version"] == "0.169.0"
    assert default["history_mode"] == "paginated"


def test_an_id_that_every_turn_uses_again_is_told_apart() -> None:
    history = [
        user("one"),
        assistant("", shell("c", "ls")),
        result("c", "a"),
        assistant("", shell("c", "pwd")),
        result("c", "b"),
        assistant("done"),
    ]

    items = [row["payload"] for row in rows_of(history) if "call_id" in row["payload"]]

    assert [item["call_id"] for item in items] == ["c", "c", "c-2", "c-2"]
    assert [item["output"].rpartition("\n")[2] for item in items if "output" in item] == ["a", "b"]


def test_an_id_that_is_too_long_for_the_api_is_shortened() -> None:
    long, other = "x" * 65, "x" * 64 + "y"
    history = [
        user("one"),
        assistant("", shell(long, "ls"), shell(other, "pwd")),
        result(other, "b"),
        result(long, "a"),
        assistant("done"),
    ]

    ids = [row["payload"]["call_id"] for row in rows_of(history) if "call_id" in row["payload"]]

    assert ids[:2] == [ids[3], ids[2]]
    assert len(set(ids)) == 2
    assert all(len(call_id) <= 64 for call_id in ids)
