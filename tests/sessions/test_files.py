"""Session files on disk: which format, cut and garbled ones, and a copy for another place."""

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
from skillup.engines.session_files import SessionReader, moved_text, rewriting
from skillup.sessions.index import detect_format, read_head
from tests.support.session_files import claude_row, codex_meta, event, read, text, told, write_rows

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
        ([{"type": "user", "name": "of something else"}], None),
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


OLD, NEW = "/tmp/a/work", "/tmp/b/play"
REWRITING = rewriting({OLD: NEW}, {"id-one": "id-two"})


def rewritten(text: str) -> str:
    line = REWRITING(json.dumps({"text": text}).encode() + b"\n")
    found: str = json.loads(line)["text"]
    return found


@pytest.mark.parametrize(
    "text",
    [
        *("{}", "{}/notes.txt", "cd {} && ls", "It is in {}.", '"{}"', "file://{}/x", "a={}:{}"),
        *("cc -I{}/include", '{{\\"cwd\\": \\"{}\\"}}', "one\\n{}\\ntwo", "one\n{}\ntwo", "({})"),
        # A word is replaced wherever it stands.
        *("id-one", "id-one.jsonl", "agent-id-one", "xid-onex"),
    ],
)
def test_whole_paths_and_words_are_replaced(text: str) -> None:
    expected = text.replace("{}", NEW).replace("id-one", "id-two")
    assert rewritten(text.replace("{}", OLD)) == expected
    assert moved_text(text.replace("{}", OLD), OLD, NEW) == text.replace("{}", NEW)


@pytest.mark.parametrize("text", [f"{OLD}2/x", f"{OLD}-old", f"{OLD}.bak", f"{OLD}_", "/tmp/a"])
def test_the_beginning_of_another_path_is_not(text: str) -> None:
    assert rewritten(text) == moved_text(text, OLD, NEW) == text


def test_the_longer_path_goes_first_and_keys_and_nested_texts_are_rewritten() -> None:
    changed = rewriting({"/a": "/b", "/a/x": "/a/y", "/b": "/c"}, {})
    assert changed(b"/a /a/x /a/z /b") == b"/b /a/y /b/z /c"
    old, new = "/tmp/w\u00f6rk 1", '/tmp/"new"'
    changed = rewriting({OLD: NEW, old: new}, {})
    row = {OLD: [{"cwd": old}, json.dumps(f"{old}/\u00fc")], "other": f"{old}2"}
    for ascii_only in (True, False):
        line = changed(json.dumps(row, ensure_ascii=ascii_only).encode() + b"\n")
        found = json.loads(line)
        assert found["other"] == f"{old}2"
        plain, quoted = found[NEW]
        assert (plain, json.loads(quoted)) == ({"cwd": new}, f"{new}/\u00fc")


@pytest.mark.parametrize(
    "line", [b'{"b": 1.50,  "a": "nothing of it"}\n', b"\xff\xfe work\n", b"\n"]
)
def test_other_lines_stay_byte_for_byte(line: bytes) -> None:
    assert REWRITING(line) == line
    assert rewriting({OLD: OLD}, {"": "x"})(line) == line
