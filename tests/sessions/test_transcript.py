"""Session files as they are on disk: which format, cut, garbled, and large."""

from __future__ import annotations

import json
import tempfile
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skillup.engines.session_files import lines_of
from skillup.sessions.readers import (
    HEAD_BYTES,
    SessionTranscript,
    detect_format,
    read_head,
)
from tests.support.session_files import (
    claude_row,
    codex_meta,
    event,
    format_named,
    read,
    text,
    told,
    write_rows,
)

HELLO = claude_row("user", "hello", "1", None)
ANSWER = claude_row("assistant", text("hi"), "2", "1")


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ([HELLO], "claude_session"),
        ([{"type": "summary", "summary": "x", "leafUuid": "1"}], "claude_session"),
        ([5, "x", {"other": 1}, HELLO], "claude_session"),
        ([{"type": "user", "message": {"content": "x"}}], "claude_session"),
        ([{"type": "system", "subtype": "init", "session_id": "s"}], "claude_stream"),
        ([codex_meta()], "codex_rollout"),
        ([event("user_message", message="x")], "codex_rollout"),
        ([{"type": "thread.started", "thread_id": "t"}], "codex_exec"),
        ([{"type": "item.completed", "item": {}}], "codex_exec"),
        ([], None),
        ([1, "x", None], None),
        ([{"type": "user", "name": "of something else"}], None),
        ([{"prompt": "x", "completion": "y"}], None),
    ],
)
def test_the_format_is_told_by_the_content(
    tmp_path: Path, rows: list[Any], expected: str | None
) -> None:
    found = detect_format(write_rows(tmp_path / "any.name", rows))
    assert (found and found.name) == expected


def test_a_last_line_that_is_cut_is_reported(tmp_path: Path) -> None:
    path = write_rows(tmp_path / "s.jsonl", [HELLO, ANSWER])
    path.write_bytes(path.read_bytes()[:-20])
    entries, summary = read(path)
    assert [told(entry) for entry in entries] == [
        ("user", "hello"),
        ("notice", "the last line is cut off"),
    ]
    assert (summary.truncated, summary.unknown_lines) == (True, 0)


def test_a_last_line_that_only_lacks_its_newline_is_whole(tmp_path: Path) -> None:
    path = write_rows(tmp_path / "s.jsonl", [HELLO, ANSWER])
    path.write_bytes(path.read_bytes().rstrip(b"\n"))
    entries, summary = read(path)
    assert [entry.role for entry in entries] == ["user", "assistant"]
    assert not summary.truncated


def test_a_broken_line_within_the_file_is_counted(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    path.write_text(f'{json.dumps(HELLO)}\n{{"type": "assis\n\n{json.dumps(ANSWER)}\n', "utf-8")
    entries, summary = read(path)
    assert [(entry.line, entry.role) for entry in entries] == [
        (1, "user"),
        (2, "notice"),
        (4, "assistant"),
    ]
    assert (summary.unknown_lines, summary.truncated) == (1, False)


def test_bytes_that_are_no_text_do_not_cost_the_message(tmp_path: Path) -> None:
    path = write_rows(tmp_path / "s.jsonl", [HELLO])
    path.write_bytes(path.read_bytes().replace(b"hello", b"hel\xfflo"))
    entries, summary = read(path)
    assert [told(entry) for entry in entries] == [("user", "hel\ufffdlo")]
    assert summary.unknown_lines == 0


def test_half_a_character_does_not_cost_the_message(tmp_path: Path) -> None:
    entries, _ = read(write_rows(tmp_path / "s.jsonl", [claude_row("user", "\ud83d", "1", None)]))
    assert [told(entry) for entry in entries] == [("user", "\ufffd")]


def test_windows_line_ends_and_a_byte_order_mark(tmp_path: Path) -> None:
    path = write_rows(tmp_path / "s.jsonl", [HELLO, ANSWER])
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes().replace(b"\n", b"\r\n"))
    entries, summary = read(path)
    assert [entry.role for entry in entries] == ["user", "assistant"]
    assert summary.unknown_lines == 0


def test_of_a_line_of_unreasonable_length_only_the_beginning_is_told(tmp_path: Path) -> None:
    long = claude_row("user", "x" * 5000, "2", "1")
    path = write_rows(tmp_path / "s.jsonl", [HELLO, long, ANSWER])
    first, second, third = lines_of(path, longest=1000)
    assert (first.row, third.row) == (HELLO, ANSWER)
    assert isinstance(second.row, str)
    assert len(second.row) == 1000
    assert [line.number for line in (first, second, third)] == [1, 2, 3]


_WORDS = st.sampled_from(
    [
        "type", "message", "content", "payload", "item", "user", "assistant", "system", "text",
        "tool_use", "tool_result", "attachment", "result", "subtype", "init", "input", "changes",
        "response_item", "event_msg", "item_completed", "function_call", "arguments", "call_id",
        "CommandExecution", "FileChange", "reasoning", "summary", "uuid", "parentUuid", "role",
        "turn.failed", "item.completed", "error", "command_execution", "file_change", "{}",
    ]
)  # fmt: skip
_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | _WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_WORDS, inner, max_size=5),
    max_leaves=12,
)
_FORMATS = ("claude_session", "claude_stream", "codex_rollout", "codex_exec")


@given(st.lists(_VALUES, max_size=6), st.sampled_from(_FORMATS))
@settings(max_examples=300, deadline=None)
def test_no_row_is_too_strange(rows: list[Any], format_: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = write_rows(Path(folder) / "s.jsonl", rows)
        for entry in SessionTranscript(path, format_named(format_)):
            assert isinstance(entry.text, str)
            told(entry)


def test_a_large_file_is_read_in_a_fraction_of_its_size(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    with path.open("w", encoding="utf-8") as file:
        for number in range(3000):
            parent = str(number - 1) if number else None
            row = claude_row("user", "x" * 5000, str(number), parent)
            file.write(json.dumps(row) + "\n")
    tracemalloc.start()
    try:
        transcript = SessionTranscript(path, format_named("claude_session"))
        assert sum(1 for _ in transcript) == 3000
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < path.stat().st_size / 10


def test_a_head_is_all_of_a_small_file(tmp_path: Path) -> None:
    path = write_rows(tmp_path / "s.jsonl", [HELLO, ANSWER])
    head = read_head(path, path.stat().st_size)
    assert head.format is not None
    assert (head.format.name, head.whole) == ("claude_session", True)
    assert (head.summary.first_words, head.summary.turns) == ("hello", 1)


def test_a_head_is_the_beginning_of_a_large_file(tmp_path: Path) -> None:
    rows = [claude_row("user", "x" * 10_000, str(number), None) for number in range(50)]
    path = write_rows(tmp_path / "s.jsonl", [HELLO, *rows])
    head = read_head(path, path.stat().st_size)
    assert not head.whole
    assert head.summary.first_words == "hello"
    assert 1 < head.summary.turns < HEAD_BYTES / 10_000
    assert (head.summary.truncated, head.summary.unknown_lines) == (False, 0)


def test_the_head_of_a_file_that_is_no_session(tmp_path: Path) -> None:
    path = write_rows(tmp_path / "s.jsonl", [{"a": 1}])
    assert read_head(path, path.stat().st_size).format is None
