"""What a copied session says of its place is replaced; what merely begins like it stays."""

from __future__ import annotations

import json

import pytest

from skillup.engines.session_files import moved_text, rewriting

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


def test_the_longer_of_two_paths_goes_first_and_nothing_is_replaced_twice() -> None:
    changed = rewriting({"/a": "/b", "/a/x": "/a/y", "/b": "/c"}, {})
    assert changed(b"/a /a/x /a/z /b") == b"/b /a/y /b/z /c"


def test_keys_and_nested_texts_are_rewritten_however_they_are_escaped() -> None:
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
