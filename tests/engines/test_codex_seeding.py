"""Threads that are written, not run: histories as rollouts, and copies of rollouts."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillup.engines.base import SessionRef, TrialContext
from skillup.engines.codex.engine import Codex
from skillup.engines.codex.rollout import is_user_message, session_file
from skillup.engines.codex.seeding import (
    CreatedCall,
    created_call,
    fork_problem,
    rollout_rows,
)
from skillup.engines.codex.transcript import CodexTranscript
from skillup.engines.session_entries import EntryLog, SessionEntry
from skillup.engines.session_files import json_line, loss_of
from skillup.schema.profile import Profile
from skillup.schema.record import HistoryItem, ToolCall
from tests.support.engine_turns import make_trial
from tests.support.pasts import Status, assistant, call, result, user
from tests.support.trees import tree_of

THREAD = "01a1fdc3-5a8b-7963-93be-65f4ca65f5d9"
NOW = "2026-01-02T03:04:05.678Z"
HISTORY = [user("one"), assistant("ONE")]


def rows_of(history: Sequence[HistoryItem], **changes: Any) -> list[dict[str, Any]]:
    given_: dict[str, Any] = {"thread_id": THREAD, "timestamp": NOW, "cwd": "/w", **changes}
    rows = list(rollout_rows(history, version="0.169.0", **given_))
    return [json.loads(json_line(row)) for row in rows]


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


def placed(kind: str, name: str = "", **arguments: Any) -> CreatedCall:
    given = {"id": "c", "name": name, "kind": kind, "arguments": arguments}
    return created_call(ToolCall.model_validate(given))


def read_again(call: CreatedCall) -> list[tuple[str, str, dict[str, Any]]]:
    payload = {"type": call.type, "name": call.name, "call_id": "c", "namespace": call.namespace}
    payload["input" if call.is_freeform else "arguments"] = call.arguments
    _, entries = read([{"type": "response_item", "payload": payload}])
    found = [entry.tool_call for entry in entries if entry.tool_call is not None]
    return [(each.name, each.kind, each.arguments) for each in found]


@pytest.mark.parametrize(
    ("given", "command"),
    [
        (placed("shell", command="ls -l"), "ls -l"),
        (placed("shell", cmd="ls -l"), "ls -l"),
        (placed("shell", command=["cat", "a b"]), "cat 'a b'"),
        (placed("shell", "command_execution", command="ls"), "ls"),
        (placed("shell", "exec_command", cmd="ls"), "ls"),
        (placed("read", path="a b.txt"), "cat 'a b.txt'"),
        (placed("read", file_path="/a/b"), "cat /a/b"),
        (placed("search", pattern="x y", path="src"), "rg -n -e 'x y' src"),
        (placed("search", query="-x"), "rg -n -e -x ."),
        (placed("skill", skill="greeter"), "cat .agents/skills/greeter/SKILL.md"),
    ],
)
def test_what_codex_does_by_the_shell(given: CreatedCall, command: str) -> None:
    assert given.name == "exec_command"
    assert json.loads(given.arguments)["cmd"] == command
    assert read_again(given) == [("command_execution", "shell", {"command": command})]


@pytest.mark.parametrize(
    ("given", "lines", "expected"),
    [
        (
            placed("write", path="a.txt", content="one\ntwo"),
            ["*** Add File: a.txt", "+one", "+two"],
            ("file_change", "write", {"path": "a.txt", "change": "add"}),
        ),
        (
            placed("write", file_path="empty", content=""),
            ["*** Add File: empty"],
            ("file_change", "write", {"path": "empty", "change": "add"}),
        ),
        (
            placed("edit", file_path="a.txt", old_string="one\n", new_string="two\nthree\n"),
            ["*** Update File: a.txt", "@@", "-one", "+two", "+three"],
            ("file_change", "edit", {"path": "a.txt", "change": "update"}),
        ),
        (
            placed("edit", "file_change", path="a.txt", change="delete"),
            ["*** Delete File: a.txt"],
            ("file_change", "edit", {"path": "a.txt", "change": "delete"}),
        ),
    ],
)
def test_files_are_changed_by_patches(
    given: CreatedCall, lines: list[str], expected: tuple[str, str, dict[str, Any]]
) -> None:
    assert given.is_freeform
    assert given.arguments.splitlines() == ["*** Begin Patch", *lines, "*** End Patch"]
    assert read_again(given) == [expected]


@pytest.mark.parametrize(
    ("given", "name", "kind"),
    [
        (placed("web", query="cats"), "web_search", "web"),
        (placed("agent", prompt="go"), "spawn_agent", "agent"),
        (placed("other", x=1), "other", "other"),
        (placed("write", unknown="form"), "write", "other"),
        (placed("edit", path="a.txt"), "edit", "other"),
        (placed("read"), "read", "other"),
        (placed("shell", "Bash", command="ls"), "Bash", "other"),
        (placed("other", "odd name.v2", x=1), "odd_name_v2", "other"),
    ],
)
def test_anything_else_is_a_function_of_its_name(given: CreatedCall, name: str, kind: str) -> None:
    assert given.type == "function_call"
    assert read_again(given) == [(name, kind, json.loads(given.arguments))]


def test_an_mcp_tool_is_in_the_namespace_of_its_server() -> None:
    given = placed("mcp", "tiny::add", a=2)

    assert (given.namespace, given.name) == ("mcp__tiny", "add")
    assert read_again(given) == [("tiny::add", "mcp", {"a": 2})]


def first_row(**changes: Any) -> dict[str, Any]:
    payload = {"id": THREAD, "cwd": "/w", "history_mode": "paginated", **changes}
    return {"type": "session_meta", "payload": payload}


@pytest.mark.parametrize(
    ("row", "said"),
    [
        (first_row(), None),
        (first_row(history_mode=None), None),
        ({}, "does not begin"),
        ({"type": "response_item", "payload": {"id": THREAD}}, "does not begin"),
        (first_row(id="another"), "does not begin"),
        (first_row(history_mode="tree"), "unknown form 'tree'"),
        (first_row(history_base={"thread_id": "x"}), "in another file"),
        (first_row(forked_from_id="x"), "in another file"),
    ],
)
def test_what_is_no_thread_on_its_own_cannot_be_forked(row: dict[str, Any], said: str) -> None:
    problem = fork_problem(row, THREAD)

    assert problem is None if said is None else said in (problem or "")


@pytest.fixture
def trial(tmp_path: Path) -> TrialContext:
    return make_trial(tmp_path / "parent", Profile(engine="codex"), version="0.169.0")


def home_of(trial: TrialContext) -> Path:
    return trial.home / "home" / ".codex"


def child_of(trial: TrialContext, base: Path) -> TrialContext:
    workspace = base / "work"
    workspace.mkdir(parents=True)
    workspace = workspace.resolve()
    return replace(trial, session_id=str(uuid4()), workspace=workspace, home=base / "home")


@pytest.mark.parametrize(
    ("version", "known"),
    [
        ("0.145.0", True),
        ("0.150.1", True),
        ("v0.169.0 (codex)", True),
        (None, False),
        ("0.144.6", False),
        ("0.170.0", False),
        ("0.169.0-alpha.1", False),
        ("0.169", False),
    ],
)
def test_only_versions_that_were_tried_can_be_seeded(version: str | None, known: bool) -> None:
    problem = Codex().seeding_problem(version)

    assert (problem is None) is known
    assert known or "0.145.0 to 0.169.0" in (problem or "")


def test_a_history_is_one_file_that_holds_what_its_fingerprint_says(trial: TrialContext) -> None:
    profile = Profile(engine="codex", base_url="http://127.0.0.1:1/v1")
    trial = replace(trial, profile=profile)

    placed = anyio.run(Codex().seed, HISTORY, trial)

    assert placed.session == SessionRef(trial.session_id)
    path = session_file(home_of(trial), trial.session_id)
    assert path is not None
    assert placed.fingerprint is not None
    assert (placed.fingerprint.seeded, placed.fingerprint.messages) == (True, 1)
    assert loss_of(path, placed.fingerprint) is None
    assert [file for file in home_of(trial).rglob("*") if file.is_file()] == [path]
    assert path.stat().st_mode & 0o077 == 0
    meta = json.loads(path.read_bytes().splitlines()[0])["payload"]
    assert meta["model_provider"] == "skillup"


def test_a_history_is_refused_where_it_cannot_be_written(trial: TrialContext) -> None:
    unknown = anyio.run(Codex().seed, HISTORY, replace(trial, version=None))
    (home_of(trial)).mkdir(parents=True)
    (home_of(trial) / "sessions").write_text("a file")
    unwritable = anyio.run(Codex().seed, HISTORY, trial)

    assert [placed.session for placed in (unknown, unwritable)] == [None, None]
    assert unknown.error is not None
    assert unknown.error.kind == "unsupported"
    assert unwritable.error is not None
    assert unwritable.error.kind == "setup"


def test_a_fork_has_the_parents_rows_under_its_own_id_and_the_parent_stays(
    trial: TrialContext, tmp_path: Path
) -> None:
    cwd, child = trial.workspace, child_of(trial, tmp_path / "child")
    history = [*HISTORY, user(f"<cwd>{cwd}</cwd> {cwd}-2 {cwd.as_uri()}/a"), assistant("TWO")]
    anyio.run(Codex().seed, history, trial)
    before = tree_of(home_of(trial))

    forked = anyio.run(Codex().fork, SessionRef(trial.session_id), trial, child)

    assert forked.error is None
    assert forked.session == SessionRef(child.session_id)
    source = session_file(home_of(trial), trial.session_id)
    copy = session_file(home_of(child), child.session_id)
    assert source is not None
    assert copy is not None
    assert forked.fingerprint == Codex().fingerprint(copy, child.session_id)
    assert copy.parent.relative_to(home_of(child)) == source.parent.relative_to(home_of(trial))
    there = child.workspace
    said = f"<cwd>{there}</cwd> {cwd}-2 {there.as_uri()}/a"
    assert said in copy.read_text()
    assert trial.session_id not in copy.read_text()
    assert tree_of(home_of(trial)) == before


def test_a_thread_that_is_no_file_on_its_own_is_not_forked(
    trial: TrialContext, tmp_path: Path
) -> None:
    child = child_of(trial, tmp_path / "child")
    gone = anyio.run(Codex().fork, SessionRef("gone"), trial, child)
    anyio.run(Codex().seed, HISTORY, trial)
    path = session_file(home_of(trial), trial.session_id)
    assert path is not None
    path.write_bytes(path.read_bytes().replace(b'"source"', b'"forked_from_id":"x","source"', 1))
    by_codex = anyio.run(Codex().fork, SessionRef(trial.session_id), trial, child)

    assert gone.error is not None
    assert gone.error.kind == "session_lost"
    assert by_codex.error is not None
    assert by_codex.error.kind == "unsupported"
    assert "in another file" in by_codex.error.message
    assert session_file(home_of(child), child.session_id) is None
