"""Sessions that claude did not hold: what our own reader finds in them is the history."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillup.engines.claude_code.engine import KNOWN_SESSIONS
from skillup.engines.claude_code.session import (
    CLOSING,
    OPENING,
    fingerprint,
    history_session,
    session_file,
    write_session,
)
from skillup.schema.check_specs import ToolKind
from skillup.schema.record import HistoryItem
from tests.support.pasts import SOUP, Status, assistant, call, result, user
from tests.support.session_files import read, told

SESSION = "5d6a3c4e-0000-4000-8000-000000000000"
NOW = datetime(2026, 1, 2, 3, 4, 5, 678901, UTC)
WORKSPACE = Path("/tmp/work space")


def rows_of(history: Sequence[HistoryItem]) -> list[dict[str, Any]]:
    """The lines of the session's file."""
    session = history_session(history, SESSION, WORKSPACE, "2.1.197", NOW)
    return [json.loads(line) for line in session.lines()]


def test_the_lines_are_a_chain_of_what_claude_asks_for() -> None:
    rows = rows_of(SOUP)

    assert [row["parentUuid"] for row in rows] == [None, *(row["uuid"] for row in rows[:-1])]
    assert len({UUID(row["uuid"]) for row in rows}) == len(rows)
    assert {(row["sessionId"], row["cwd"], row["version"]) for row in rows} == {
        (SESSION, str(WORKSPACE), "2.1.197")
    }
    times = [row["timestamp"] for row in rows]
    assert times[-2:] == ["2026-01-02T03:04:04.678Z", "2026-01-02T03:04:05.678Z"]
    assert all(earlier < later for earlier, later in pairwise(times))


def test_an_answer_is_one_message_with_a_line_for_each_block() -> None:
    messages = [row["message"] for row in rows_of(SOUP) if row["type"] == "assistant"]

    ids = [message["id"] for message in messages]
    assert [ids.count(id_) for id_ in dict.fromkeys(ids)] == [3, 1, 1, 1]
    assert all(message["model"] for message in messages)
    assert [[block["type"] for block in message["content"]] for message in messages] == [
        ["text"],
        ["tool_use"],
        ["tool_use"],
        ["tool_use"],
        ["text"],
        ["text"],
    ]


def test_failures_are_told_with_words() -> None:
    calls = [call(id_, "shell", command="x") for id_ in "abc"]
    past = [user("go"), assistant("", *calls), result("a", "", "error"), result("b", "", "unknown")]

    contents = [row["message"]["content"] for row in rows_of([*past, result("c", "fine")])]

    assert [content[0] for content in contents[4:7]] == [
        {
            "type": "tool_result",
            "tool_use_id": "a",
            "content": "(no output)",
            "is_error": True,
        },
        {"type": "tool_result", "tool_use_id": "b", "content": ""},
        {"type": "tool_result", "tool_use_id": "c", "content": "fine"},
    ]


def test_ids_that_come_again_or_that_no_api_takes_are_written_as_others() -> None:
    one_round = [assistant("", call("call:1", "shell", command="x")), result("call:1", "y")]
    other = [assistant("", call("call_1_2", "shell", command="x")), result("call_1_2", "z")]

    blocks = [
        block
        for row in rows_of([user("go"), *one_round, *one_round, *other])
        for block in row["message"]["content"]
        if isinstance(block, dict)
    ]

    made = [block["id"] for block in blocks if block["type"] == "tool_use"]
    answered = [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"]
    assert made == answered == ["call_1", "call_1_2", "call_1_2_2"]


@pytest.mark.parametrize(
    ("history", "first", "last"),
    [
        ([user("a"), assistant("b")], "a", "b"),
        ([assistant("b")], OPENING, "b"),
        ([user("a"), assistant("b"), user("c")], "a", CLOSING),
        ([user("a"), assistant("", call("1")), result("1", "x")], "a", CLOSING),
        # Claude's own note, and no message to our fingerprint either.
        ([user("[Request interrupted by user]"), assistant("b")], OPENING, "b"),
        ([user(" "), assistant("\n"), user("a"), assistant("b")], "a", "b"),
    ],
)
def test_the_ends_are_such_that_claude_adds_nothing(
    history: Sequence[HistoryItem], first: str, last: str
) -> None:
    session = history_session(history, SESSION, WORKSPACE, "2.1.197", NOW)

    messages = [row["message"] for row in session.rows]
    assert (messages[0]["content"], messages[-1]["content"][0]["text"]) == (first, last)
    assert len(session.notices) == (first == OPENING) + (last == CLOSING)


def test_a_history_that_says_nothing_makes_no_session() -> None:
    assert rows_of([user(" "), assistant("")]) == []


def test_what_json_or_unicode_do_not_have_makes_no_broken_line(tmp_path: Path) -> None:
    odd = call("1", "other", "tool", number=float("nan"), path=Path("/a"))
    past = [user("half a \ud83d pair"), assistant("b", odd), result("1", "\x00"), assistant("c")]

    entries, summary = read(
        write_session(history_session(past, SESSION, WORKSPACE, "2.1.197", NOW), tmp_path)
    )

    assert summary.unknown_lines == 0
    assert entries[0].text == "half a \ufffd pair"
    assert [e.tool_call.arguments for e in entries if e.tool_call] == [
        {"number": "NaN", "path": "/a"}
    ]


def test_the_file_is_where_it_is_looked_for_and_is_nobody_elses(tmp_path: Path) -> None:
    session = history_session(SOUP, SESSION, WORKSPACE, "2.1.197", NOW)

    path = write_session(session, tmp_path)

    taken = fingerprint(tmp_path, SESSION)
    assert session_file(tmp_path, SESSION) == path
    assert path == tmp_path / "projects" / "-tmp-work-space" / f"{SESSION}.jsonl"
    assert path.stat().st_mode & 0o077 == 0
    assert taken is not None
    assert taken.messages == 2
    with pytest.raises(FileExistsError):
        write_session(session, tmp_path)


def test_the_documentation_names_the_versions_that_are_known() -> None:
    page = (Path(__file__).parents[2] / "docs" / "sessions.md").read_text("utf-8")

    assert f"| `claude_code` | {' and '.join(map(str, KNOWN_SESSIONS))} |" in page


WORDS = st.text(min_size=1, max_size=20).map(lambda text: f"say {text}")
KINDS: st.SearchStrategy[ToolKind] = st.sampled_from(["shell", "read", "write", "mcp", "other"])
STATUS: st.SearchStrategy[Status] = st.sampled_from(["success", "error"])
NAMES = st.sampled_from(["", "", "Bash", "kitchen::stock", "exec_command"])


@st.composite
def answers(draw: st.DrawFn) -> list[HistoryItem]:
    """An answer, with calls of which all results follow in any order."""
    numbers = draw(st.lists(st.integers(0, 99), unique=True, max_size=3))
    calls = [
        call(f"call-{n}", draw(KINDS), draw(NAMES), **{draw(WORDS): draw(WORDS)}) for n in numbers
    ]
    said = draw(WORDS) if not calls or draw(st.booleans()) else ""
    ordered = draw(st.permutations(numbers))
    return [
        assistant(said, *calls),
        *(result(f"call-{n}", draw(WORDS), draw(STATUS)) for n in ordered),
    ]


HISTORIES = st.lists(
    st.one_of(WORDS.map(lambda words: [user(words)]), answers()), min_size=1, max_size=8
).map(lambda parts: [item for part in parts for item in part])


@given(HISTORIES)
def test_our_reader_finds_every_message_call_and_result_in_order(
    history: Sequence[HistoryItem],
) -> None:
    session = history_session(history, SESSION, WORKSPACE, "2.1.197", NOW)
    with TemporaryDirectory() as home:
        entries, summary = read(write_session(session, Path(home)))

    expected: list[tuple[str, str]] = []
    for item in history:
        if item.tool_result is not None:
            expected.append(("tool_result", item.content))
            continue
        if item.content:
            expected.append((item.role, item.content))
        expected += [("tool_call", made.name) for made in item.tool_calls]
    shown = [told(entry) for entry in entries]
    shown = shown[1:] if shown[0] == ("user", OPENING) else shown
    shown = shown[:-1] if shown[-1] == ("assistant", CLOSING) else shown
    assert [role for role, _ in shown] == [role for role, _ in expected]
    assert all(there == text for (_, there), (_, text) in zip(shown, expected, strict=True) if text)
    assert not any(entry.left for entry in entries)
    made = [entry.tool_call.id for entry in entries if entry.tool_call is not None]
    answered = [entry.tool_result.call_id for entry in entries if entry.tool_result is not None]
    assert len(set(made)) == len(made)
    assert sorted(made) == sorted(answered)
    assert (summary.unknown_lines, summary.session_id) == (0, SESSION)
