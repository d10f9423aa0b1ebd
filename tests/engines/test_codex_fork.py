"""Copies of rollouts under another id, in another directory."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillup.engines.codex.created_sessions import fork_problem, forked_lines

OLD = "01a1fdc3-5a8b-7963-93be-65f4ca65f5d9"
NEW = "7b1e2a9e-4d0f-4d5c-9a53-1f7c1a8e9b00"
THERE, HERE = Path("/tmp/parent/workspace"), Path("/tmp/child/workspace")


def fork(*lines: bytes, there: Path = THERE, here: Path = HERE) -> list[bytes]:
    return list(forked_lines(lines, OLD, NEW, {there: here}))


def row(**payload: Any) -> bytes:
    return json.dumps({"type": "response_item", "payload": payload}).encode() + b"\n"


def forked_text(text: str, there: Path = THERE, here: Path = HERE) -> str:
    (line,) = fork(row(text=text), there=there, here=here)
    return str(json.loads(line)["payload"]["text"])


def meta(**changes: Any) -> bytes:
    payload = {"id": OLD, "cwd": str(THERE), "history_mode": "paginated", **changes}
    return json.dumps({"type": "session_meta", "payload": payload}).encode()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"{THERE}", f"{HERE}"),
        (f"<cwd>{THERE}</cwd>", f"<cwd>{HERE}</cwd>"),
        (f"see {THERE}/a.txt.", f"see {HERE}/a.txt."),
        (f"it is {THERE}.", f"it is {HERE}."),
        (f"file://{THERE}/a", f"file://{HERE}/a"),
        (f"cc -I{THERE}/include", f"cc -I{HERE}/include"),
        (json.dumps({"cmd": f"a\n{THERE}/x"}), json.dumps({"cmd": f"a\n{HERE}/x"})),
        (f"{THERE}-2 {THERE}.bak {THERE}s", f"{THERE}-2 {THERE}.bak {THERE}s"),
        (f"/mnt{THERE}", f"/mnt{THERE}"),
        (f"{HERE} and {THERE.parent}", f"{HERE} and {THERE.parent}"),
    ],
)
def test_only_the_whole_path_of_the_workspace_becomes_the_childs(text: str, expected: str) -> None:
    assert forked_text(text) == expected


@pytest.mark.parametrize("name", ["a b", 'qu"ote', "ünï", "a&b", "back\\slash"])
def test_a_path_is_found_however_codex_and_the_model_write_it(name: str) -> None:
    there, here = Path("/tmp/p") / name, Path("/tmp/c") / name
    nested = json.dumps({"cmd": f"cat {there}/x"})

    assert forked_text(nested, there, here) == json.dumps({"cmd": f"cat {here}/x"})
    assert forked_text(f"file://{there.as_uri()[7:]}/x", there, here) == f"{here.as_uri()}/x"
    assert forked_text(str(there).replace("&", "&amp;"), there, here) == str(here).replace(
        "&", "&amp;"
    )


def test_paths_that_are_keys_become_the_childs() -> None:
    (line,) = fork(row(changes={f"{THERE}/a.txt": {"type": "add"}}))

    assert json.loads(line)["payload"]["changes"] == {f"{HERE}/a.txt": {"type": "add"}}


def test_the_id_is_another_one_wherever_it_stands() -> None:
    lines = fork(row(thread_id=OLD, text=f"rollout-{OLD}.jsonl"), f"cut {OLD}".encode())

    assert OLD.encode() not in b"".join(lines)
    assert json.loads(lines[0])["payload"]["text"] == f"rollout-{NEW}.jsonl"
    assert lines[1] == f"cut {NEW}".encode()


@given(st.lists(st.binary(max_size=60)))
def test_lines_that_name_neither_stay_as_they_are(lines: list[bytes]) -> None:
    assert fork(*lines) == lines


@given(st.recursive(st.text() | st.integers() | st.none(), lambda inner: st.lists(inner)))
def test_a_line_without_a_newline_gets_none_and_its_values_stay(value: Any) -> None:
    line = json.dumps({"payload": value, "cwd": str(THERE)}).encode()

    (forked,) = fork(line)

    assert json.loads(forked) == {"payload": value, "cwd": str(HERE)}
    assert not forked.endswith(b"\n")


def test_what_begins_like_a_thread_can_be_forked() -> None:
    assert fork_problem(meta(), OLD) is None
    assert fork_problem(meta(history_mode=None), OLD) is None


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (b"", "does not begin"),
        (b"[1]", "does not begin"),
        (b"{cut", "does not begin"),
        (row(id=OLD), "does not begin"),
        (meta(id=NEW), "does not begin"),
        (meta(history_mode="tree"), "unknown form 'tree'"),
        (meta(history_base={"thread_id": NEW}), "in another file"),
        (meta(forked_from_id=NEW), "in another file"),
    ],
)
def test_what_is_no_thread_on_its_own_cannot_be_forked(line: bytes, said: str) -> None:
    problem = fork_problem(line, OLD)

    assert problem is not None
    assert said in problem
