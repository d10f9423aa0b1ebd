"""What a copied session says of its place is replaced; what merely looks like it stays."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skillup.engines.session_files import Rewriting

OLD, NEW = "/tmp/a/work", "/tmp/b/play"
REWRITING = Rewriting({OLD: NEW}, {"id-one": "id-two"})


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
    assert REWRITING.text(text.replace("{}", OLD)) == expected


@pytest.mark.parametrize(
    "text",
    [f"{OLD}2/x", f"{OLD}-old", f"{OLD}.bak", f"{OLD}_", f"/private{OLD}", f"./x{OLD}", "/tmp/a"],
)
def test_the_beginning_or_end_of_another_path_is_not(text: str) -> None:
    assert REWRITING.text(text) == text


def test_the_longer_of_two_paths_goes_first_and_nothing_is_replaced_twice() -> None:
    rewriting = Rewriting({"/a": "/b", "/a/x": "/a/y", "/b": "/c"}, {})
    assert rewriting.text("/a /a/x /a/z /b") == "/b /a/y /b/z /c"


def test_keys_and_nested_strings_are_rewritten_however_they_are_escaped() -> None:
    thought = {"type": "thought", "text": OLD}
    old, new = "/tmp/wörk 1", '/tmp/"new"'
    rewriting = Rewriting(
        {OLD: NEW, old: new}, {}, untouched=lambda value: value.get("type") == "thought"
    )
    row = {OLD: [{"cwd": old}, json.dumps(f"{old}/ü")], "other": f"{old}2", "thought": thought}
    expected = {NEW: [{"cwd": new}, json.dumps(f"{new}/ü")], "other": f"{old}2", "thought": thought}
    for ascii_only in (True, False):
        line = rewriting.line(json.dumps(row, ensure_ascii=ascii_only).encode() + b"\n")
        assert line.count(b"\n") == 1
        assert {k: v for k, v in json.loads(line).items() if k != NEW} == {
            k: v for k, v in expected.items() if k != NEW
        }
        plain, quoted = json.loads(line)[NEW]
        assert (plain, json.loads(quoted)) == ({"cwd": new}, f"{new}/ü")


@pytest.mark.parametrize(
    "line",
    [
        b'{"b": 1.50,  "a": "nothing of it"}\n',
        b'{"cwd": "/tmp/a/work2"}\n',
        b'{"cwd": "/tmp/a/work\n',
        b"/tmp/a/work\n",
        b"\xff\xfe work id-one\n",
        b"\n",
    ],
)
def test_other_lines_stay_byte_for_byte(line: bytes) -> None:
    assert REWRITING.line(line) == line
    assert Rewriting({OLD: OLD}, {"": "x"}).line(line) == line


PIECES = st.sampled_from([*'ab/-. \n"\\é', OLD, "id-one", "work"])


@settings(max_examples=60)
@given(st.lists(PIECES).map("".join))
def test_a_rewritten_line_is_the_json_of_the_rewritten_text(text: str) -> None:
    line = REWRITING.line(json.dumps({"text": text}).encode())
    assert json.loads(line) == {"text": REWRITING.text(text)}
