"""Session files as they are on disk: which format, cut, garbled, and large."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skillup.engines.claude_code.events import ClaudeEvents, ClaudeTranscript
from skillup.engines.codex.events import CodexEvents, CodexTranscript
from skillup.engines.session_files import SessionReader
from skillup.sessions.index import detect_format, read_head
from tests.support.session_files import (
    claude_row,
    codex_meta,
    event,
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
        ([HELLO], "claude_code"),
        ([5, "x", {"other": 1}, HELLO], "claude_code"),
        ([{"type": "user", "message": {"content": "x"}}], "claude_code"),
        ([{"type": "user", "session_id": "s", "message": {"content": "x"}}], None),
        ([codex_meta()], "codex"),
        ([event("user_message", message="x")], "codex"),
        ([], None),
        ([1, "x", None], None),
        ([{"type": "user", "name": "of something else"}], None),
        ([{"prompt": "x", "completion": "y"}], None),
    ],
)
def test_the_content_says_the_format(tmp_path: Path, rows: list[Any], expected: str | None) -> None:
    path = write_rows(tmp_path / "any.name", rows)
    found = detect_format(path)
    assert (found and found.engine) == expected
    assert (read_head(path, path.stat().st_size) is None) == (found is None)


WHOLE = b"".join(json.dumps(row).encode() + b"\n" for row in (HELLO, ANSWER))
USER, AGENT = (1, "user", "hello"), (2, "assistant", "hi")


@pytest.mark.parametrize(
    ("data", "expected", "truncated", "unknown"),
    [
        (WHOLE, [USER, AGENT], False, 0),
        (WHOLE[:-20], [USER, (2, "notice", "the last line is cut off")], True, 0),
        (WHOLE[:-1], [USER, AGENT], False, 0),
        (
            WHOLE.replace(b"\n", b'\n{"type": "assis\n\n', 1),
            [USER, (2, "notice", 'unknown event: {"type": "assis'), (4, *AGENT[1:])],
            False,
            1,
        ),
        (WHOLE.replace(b"hello", b"hel\xfflo"), [(1, "user", "hel\ufffdlo"), AGENT], False, 0),
        (WHOLE.replace(b"hello", b"\\ud83d"), [(1, "user", "\ufffd"), AGENT], False, 0),
        (b"\xef\xbb\xbf" + WHOLE.replace(b"\n", b"\r\n"), [USER, AGENT], False, 0),
    ],
    ids=["whole", "cut", "no newline", "broken", "no UTF-8", "half a character", "windows"],
)
def test_lines_that_are_not_as_they_should_be(
    tmp_path: Path, data: bytes, expected: list[Any], truncated: bool, unknown: int
) -> None:
    path = tmp_path / "s.jsonl"
    path.write_bytes(data)
    entries, summary = read(path)
    assert [(entry.line, *told(entry)) for entry in entries] == expected
    assert (summary.truncated, summary.unknown_lines) == (truncated, unknown)


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


@given(st.lists(_VALUES, max_size=6), st.sampled_from([ClaudeTranscript, CodexTranscript]))
@settings(max_examples=150)
def test_no_row_is_too_strange(rows: list[Any], format_: type[SessionReader]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = write_rows(Path(folder) / "s.jsonl", rows)
        for parser in (ClaudeEvents(), CodexEvents(Path("/w"))):
            for line in path.read_bytes().splitlines():
                parser.feed(line)
            assert parser.failure is None or parser.failure.text is not None
        for entry in format_().read(path):
            assert isinstance(entry.item.text or "", str)
            told(entry)
