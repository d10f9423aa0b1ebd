"""What a copied session says of its place is replaced; what merely looks like it stays."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillup.engines.session_files import Rewriting

OLD, NEW = "/tmp/a/work", "/tmp/b/play"
REWRITING = Rewriting({OLD: NEW}, {"id-one": "id-two"})


@pytest.mark.parametrize(
    "text",
    [
        "{}",
        "{}/notes.txt",
        "cd {} && ls",
        "It is in {}.",
        '"{}"',
        "file://{}/x",
        "a={}:{}",
        "cc -I{}/include",
        '{{\\"cwd\\": \\"{}\\"}}',
        "one\\n{}\\ntwo",
        "one\n{}\ntwo",
        "({})",
    ],
)
def test_a_whole_path_is_replaced(text: str) -> None:
    assert REWRITING.text(text.replace("{}", OLD)) == text.replace("{}", NEW)


@pytest.mark.parametrize(
    "text",
    [f"{OLD}2/x", f"{OLD}-old", f"{OLD}.bak", f"{OLD}_", f"/private{OLD}", f"./x{OLD}", "/tmp/a"],
)
def test_the_beginning_or_end_of_another_path_is_not(text: str) -> None:
    assert REWRITING.text(text) == text


@pytest.mark.parametrize("text", ["id-one", "id-one.jsonl", "agent-id-one", "xid-onex"])
def test_a_word_is_replaced_wherever_it_stands(text: str) -> None:
    assert REWRITING.text(text) == text.replace("id-one", "id-two")


def test_the_longer_of_two_paths_goes_first_and_nothing_is_replaced_twice() -> None:
    rewriting = Rewriting({"/a": "/b", "/a/x": "/a/y", "/b": "/c"}, {})

    assert rewriting.text("/a /a/x /a/z /b") == "/b /a/y /b/z /c"


def test_keys_and_nested_strings_are_rewritten_and_the_line_stays_one() -> None:
    row = {OLD: [{"cwd": OLD, "n": 1}, json.dumps({"cwd": f"{OLD}/ü"})], "id": "id-one", "x": None}

    line = REWRITING.line(json.dumps(row).encode() + b"\n")

    assert json.loads(line) == json.loads(
        json.dumps(row).replace(OLD, NEW).replace("id-one", "id-two")
    )
    assert line.count(b"\n") == 1


def test_paths_are_found_however_they_are_escaped() -> None:
    rewriting = Rewriting({"/tmp/wörk 1": '/tmp/"new"'}, {})
    row = {"plain": "/tmp/wörk 1/a", "json": json.dumps("/tmp/wörk 1"), "other": "/tmp/wörk 12"}

    for ascii_only in (True, False):
        line = json.dumps(row, ensure_ascii=ascii_only).encode()
        assert json.loads(rewriting.line(line)) == {
            "plain": '/tmp/"new"/a',
            "json": json.dumps('/tmp/"new"'),
            "other": "/tmp/wörk 12",
        }


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


def test_what_must_not_be_touched_is_not() -> None:
    rewriting = Rewriting({OLD: NEW}, {}, untouched=lambda value: value.get("type") == "thought")
    row = [{"type": "thought", "text": OLD}, {"type": "text", "text": OLD}]

    rewritten = json.loads(rewriting.line(json.dumps(row).encode()))

    assert rewritten == [row[0], {"type": "text", "text": NEW}]


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text(), st.lists, max_leaves=9))
def test_without_a_replacement_nothing_changes(value: object) -> None:
    line = json.dumps(value).encode()

    assert Rewriting({OLD: OLD}, {"": "x"}).line(line) == line
    assert json.loads(Rewriting({"/": "/"}, {"a": "a"}).line(line)) == value


PIECES = st.sampled_from([*'ab/-. \n"\\é', OLD, "id-one", "work"])


@given(st.lists(PIECES).map("".join))
def test_a_rewritten_line_is_the_json_of_the_rewritten_text(text: str) -> None:
    line = REWRITING.line(json.dumps({"text": text}).encode())

    assert json.loads(line) == {"text": REWRITING.text(text)}
