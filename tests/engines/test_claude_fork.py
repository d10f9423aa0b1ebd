"""Copies of sessions: what is copied, under which names, and that the parent's stays."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from skillup.engines.claude_code.session import (
    SessionPlace,
    fork_session,
    history_session,
    now,
    write_session,
)
from tests.support.pasts import SOUP, assistant, call, result, user
from tests.support.session_files import read, told

PARENT = "5d6a3c4e-0000-4000-8000-000000000001"
CHILD = "5d6a3c4e-0000-4000-8000-000000000002"


def place(base: Path, name: str, session_id: str, engine_home: Path | None = None) -> SessionPlace:
    """A trial's own directories below `base/name`."""
    home = base / name / "trial-home"
    workspace = base / name / "workspace"
    workspace.mkdir(parents=True)
    return SessionPlace(engine_home or home / "home" / ".claude", home, workspace, session_id)


def parent_session(place: SessionPlace) -> Path:
    """A session that names its workspace and its own directory, with what belongs to it."""
    said = [
        user(f"work in {place.workspace}, not in {place.workspace}2"),
        assistant("", call("1", "write", path=f"{place.workspace}/notes.txt", content="x")),
        result("1", f"kept in {place.file.with_suffix('')}/tool-results/1.txt"),
        assistant("done"),
    ]
    session = history_session([*SOUP, *said], place.session_id, place.workspace, "2.1.197", now())
    path = write_session(session, place.engine_home)
    files = {
        "subagents/agent-a1.jsonl": json.dumps({"cwd": str(place.workspace), "agentId": "a1"}),
        "subagents/agent-a1.meta.json": '{"agentType":"Explore"}',
        "tool-results/1.txt": f"output of {place.workspace}",
    }
    for name, content in files.items():
        target = path.with_suffix("") / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(content)
    tasks = place.engine_home / "tasks" / place.session_id
    tasks.mkdir(parents=True)
    (tasks / "1.json").write_text("{}")
    (place.engine_home / "tasks" / "another").mkdir()
    return path


def everything(directory: Path) -> dict[str, bytes]:
    """The bytes of all files."""
    files = sorted(path for path in directory.rglob("*") if path.is_file())
    return {str(path.relative_to(directory)): path.read_bytes() for path in files}


@pytest.mark.parametrize("shared", [False, True])
def test_a_fork_is_the_same_conversation_at_another_place(tmp_path: Path, shared: bool) -> None:
    common = tmp_path / "user" / ".claude" if shared else None
    parent = place(tmp_path, "parent", PARENT, common)
    child = place(tmp_path, "child", CHILD, common)
    source = parent_session(parent)
    before = everything(source.parent)

    copy = fork_session(source, parent, child)

    assert copy == child.file
    assert everything(source.parent) == before
    there, here = str(parent.workspace), str(child.workspace)
    (old, _), (new, summary) = read(source), read(copy)
    assert [told(entry) for entry in new] == [
        (
            role,
            text.replace(f"{there},", f"{here},").replace(str(source.with_suffix("")), _own(copy)),
        )
        for role, text in map(told, old)
    ]
    assert (summary.session_id, summary.cwd) == (CHILD, here)
    text = copy.read_text()
    assert PARENT not in text
    assert text.count(there) == text.count(f"{there}2") == 1
    assert copy.stat().st_mode & 0o077 == 0


def test_what_belongs_to_a_session_goes_with_it(tmp_path: Path) -> None:
    parent, child = place(tmp_path, "parent", PARENT), place(tmp_path, "child", CHILD)

    copy = fork_session(parent_session(parent), parent, child)

    own = everything(copy.with_suffix(""))
    assert sorted(own) == [
        "subagents/agent-a1.jsonl",
        "subagents/agent-a1.meta.json",
        "tool-results/1.txt",
    ]
    agent = json.loads(own["subagents/agent-a1.jsonl"])
    assert agent == {"cwd": str(child.workspace), "agentId": "a1"}
    assert everything(child.engine_home / "tasks") == {f"{CHILD}/1.json": b"{}"}


def test_signed_thoughts_stay_as_they_are(tmp_path: Path) -> None:
    parent, child = place(tmp_path, "parent", PARENT), place(tmp_path, "child", CHILD)
    source = parent_session(parent)
    thought = {"type": "thinking", "thinking": f"in {parent.workspace}", "signature": "s"}
    row = {"type": "assistant", "cwd": str(parent.workspace), "message": {"content": [thought]}}
    with source.open("a") as file:
        file.write(json.dumps(row) + "\n")

    last = json.loads(fork_session(source, parent, child).read_text().splitlines()[-1])

    assert last == {**row, "cwd": str(child.workspace)}


def test_a_session_that_is_there_is_not_written_over(tmp_path: Path) -> None:
    parent, child = place(tmp_path, "parent", PARENT), place(tmp_path, "child", CHILD)
    source = parent_session(parent)
    fork_session(source, parent, child)

    with pytest.raises(FileExistsError):
        fork_session(source, parent, child)


def _own(copy: Path) -> str:
    return str(copy.with_suffix(""))
