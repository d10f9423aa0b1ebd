"""Rollouts: a turn's own tokens, calls that the events do not show, histories, and copies."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import anyio
import pytest

from skillup.engines.base import TrialContext
from skillup.engines.codex.engine import Codex, broken_sandbox, codex_call, read_part, with_refused
from skillup.engines.codex.events import CodexTranscript
from skillup.engines.created_sessions import UnwritableError, with_own_ids
from skillup.engines.events import Transcript
from skillup.engines.session_files import json_line, loss_of, missing_message
from skillup.schema.checks import ToolKind
from skillup.schema.profile import Profile
from tests.support.engine_turns import make_trial
from tests.support.pasts import assistant, call, result, user
from tests.support.session_files import codex_row, done, event, item, write_rows
from tests.support.trees import tree_of

CODEX = Codex()
THREAD = "01a1fdc3-5a8b-7963-93be-65f4ca65f5d9"
HISTORY = [user("one"), assistant("ONE")]


def said(text: str) -> dict[str, Any]:
    return done("UserMessage", content=[{"type": "text", "text": text}])


def total(count: int) -> dict[str, Any]:
    usage = {"input_tokens": count, "output_tokens": count // 10}
    return event("token_count", info={"total_token_usage": usage})


def run(call_id: str, command: str) -> dict[str, Any]:
    arguments = json.dumps({"cmd": command})
    return item("function_call", name="exec_command", arguments=arguments, call_id=call_id)


def output(call_id: str, text: str) -> dict[str, Any]:
    return item("function_call_output", call_id=call_id, output=text)


def write(home: Path, *rows: dict[str, Any]) -> Path:
    path = home / "sessions" / "2026" / "01" / "01" / f"rollout-2026-01-01T00-00-00-{THREAD}.jsonl"
    return write_rows(path, rows)


def append(path: Path, *rows: dict[str, Any]) -> int:
    """Where the rows begin."""
    size = path.stat().st_size
    with path.open("a") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)
    return size


def test_what_a_session_holds_after_a_turn_and_what_it_lost(tmp_path: Path) -> None:
    path = write(tmp_path, codex_row("session_meta", id=THREAD), said("one"), said("two"))
    assert CODEX.session_file(tmp_path, THREAD) == path
    first = CODEX.fingerprint(path, THREAD)
    append(path, said("three"))
    second = CODEX.fingerprint(path, THREAD)
    assert first
    assert second
    assert (first.messages, second.messages) == (2, 3)
    assert (loss_of(path, first), missing_message(second, first)) == (None, None)
    told = "it held user messages before the turn: 2; after it: "
    assert missing_message(first, first) == f"{told}2"
    assert missing_message(None, first) == f"{told}0"
    bytes_then = f"{first.prefix_bytes} bytes after the turn before"
    held = f"{path}: it held {bytes_then} (sha256 {first.prefix_sha256[:16]}…); now these are"
    path.write_bytes(path.read_bytes().replace(b"one", b"eno"))
    assert f"{held} {first.prefix_bytes} (" in (loss_of(path, first) or "")
    write(tmp_path, said("one"))
    assert f"{held} {path.stat().st_size} (" in (loss_of(path, first) or "")
    path.unlink()
    assert "its file is gone" in (loss_of(path, first) or "")
    assert CODEX.fingerprint(CODEX.session_file(tmp_path, THREAD), THREAD) is None


def test_the_tokens_of_a_turn_are_its_own(tmp_path: Path) -> None:
    """The running total less that before; if it began again, all of it."""
    path = write(tmp_path, total(200))
    first = read_part(path, 0).usage
    own = read_part(path, append(path, total(230), total(270))).usage
    assert own
    assert first
    assert (own.input_tokens, own.output_tokens, own.cached_input_tokens) == (70, 7, None)
    assert first.input_tokens == 200
    back = read_part(path, append(path, total(100))).usage
    assert back
    assert back.input_tokens == 100
    assert read_part(path, append(path, said("two"))).usage is None


def test_calls_that_codex_refused_and_skills_that_the_prompt_loaded(tmp_path: Path) -> None:
    patch = "*** Begin Patch\n*** Add File: a.txt\n+x\n*** Delete File: b.txt\n*** End Patch\n"
    text = "<skill>\n<name>greeter</name>\nBow.\n</skill>"
    path = write(
        tmp_path,
        item("message", role="user", content=[{"type": "input_text", "text": text}]),
        *[run("c0", "touch zero"), output("c0", "Exit\nOutput:\nRead-only")],
        *[run("c1", "echo one"), done("CommandExecution", id="c1"), output("c1", "one")],
        item("custom_tool_call", name="apply_patch", call_id="c3", input=patch),
        item("custom_tool_call_output", call_id="c3", output="refused"),
        *[run("c4", "sleep 99"), output("c4", "Process running with session ID 7")],
    )
    part = read_part(path, 0)
    assert [after for after, _ in part.refused] == [0, 0, 1, 1, 1, 1]
    calls = [one.tool_call for _, one in part.refused if one.tool_call]
    assert [(call.kind, *call.arguments.values()) for call in calls] == [
        ("shell", "touch zero"),
        ("write", "a.txt", "add"),
        ("edit", "b.txt", "delete"),
    ]
    results = [one.tool_result for _, one in part.refused if one.tool_result]
    assert [one.content for one in results] == ["Read-only", "refused", "refused"]
    assert {one.status for one in results} == {"error"}
    assert part.loaded_skills == ["greeter"]
    stream = Transcript()
    for name in ("item_1", "item_9"):
        stream.call(name, "command_execution", "shell", {"command": name})
        stream.result(name, "success", "")
    stream.message("Done.")
    merged = with_refused(stream.items, part.refused)
    names = [next(iter(one.tool_call.arguments.values())) for one in merged if one.tool_call]
    assert names == ["touch zero", "item_1", "a.txt", "b.txt", "item_9"]
    assert merged[-1].text == "Done."


@pytest.mark.parametrize(
    ("outputs", "reason"),
    [
        (["bwrap: setting up uid map: Permission denied\n"] * 2, "bwrap: setting up uid map: "),
        (["failed to exec system bubblewrap /usr/bin/bwrap: ENOENT"], "failed to exec system"),
        (["bwrap: Creating new namespace failed (ENOSPC)", "Read-only file system"], None),
        (["touch: bwrap: Read-only file system"], None),
        ([], None),
    ],
)
def test_commands_that_no_sandbox_could_be_made_for_are_the_machines_failure(
    tmp_path: Path, outputs: list[str], reason: str | None
) -> None:
    """S2: only if none of the turn's commands ran; codex shows no event for any of them."""
    calls = [(run(f"c{n}", "touch x"), output(f"c{n}", text)) for n, text in enumerate(outputs)]
    path = write(tmp_path, *[line for pair in calls for line in pair])
    items = [one for _, one in read_part(path, 0).refused]
    found = broken_sandbox(items)
    assert (found is None) if reason is None else (found or "").startswith(reason)
    ran = Transcript()
    ran.call("item_0", "command_execution", "shell", {"command": "echo bwrap: x"})
    ran.result("item_0", "success", "bwrap: x")
    assert broken_sandbox([*items, *ran.items]) is None


def test_a_history_is_read_as_it_was_given(trial: TrialContext) -> None:
    calls = [call(id_, "shell", command=f"echo {id_}") for id_ in "ab"]
    results = [result("b", "no", "error"), result("a", "yes"), assistant("", calls[0])]
    past = [user("one"), assistant("I look", *calls), *results, result("a", "?", "unknown")]
    past = with_own_ids([*past, assistant("ONE"), *HISTORY])
    rows = [json.loads(json_line(row)) for row in CODEX.history_rows(past, trial)[0]]
    reader = CodexTranscript()
    for row in rows:
        reader.feed(row)
    entries = reader.entries
    found = [(entry.role, entry.item.text) for entry in entries if entry.item.text is not None]
    said_ = [("user", "one"), ("assistant", "I look"), ("assistant", "ONE")]
    assert found == [*said_, ("user", "one"), ("assistant", "ONE")]
    made = [entry.item.tool_call for entry in entries if entry.item.tool_call]
    assert [(one.id, one.kind) for one in made] == [(f"call_{n}", "shell") for n in (1, 2, 3)]
    given = [entry.item.tool_result for entry in entries if entry.item.tool_result]
    assert [(one.call_id, one.status, one.content) for one in given] == [
        ("call_2", "error", "no"),
        ("call_1", "success", "yes"),
        ("call_3", "unknown", "?"),
    ]
    assert (reader.summary.turns, reader.summary.unknown_lines) == (2, 0)
    assert reader.summary.session_id == trial.session_id
    assert [row["ordinal"] for row in rows] == list(range(len(rows)))
    assert sum(map(CODEX.is_user_message, rows)) == 2
    assert rows[0]["type"] == "session_meta"
    assert all(row["type"] != "turn_context" for row in rows)


@pytest.mark.parametrize(
    ("kind", "name", "given", "made"),
    [
        ("shell", "", {"command": "ls -l"}, ("", "exec_command", {"cmd": "ls -l"})),
        ("shell", "", {"cmd": "ls -l"}, ("", "exec_command", {"cmd": "ls -l"})),
        ("shell", "", {"command": ["cat", "a b"]}, ("", "exec_command", {"cmd": "cat 'a b'"})),
        ("shell", "command_execution", {"cmd": "ls"}, ("", "exec_command", {"cmd": "ls"})),
        ("read", "", {"x": 1}, ("", "read", {"x": 1})),
        ("shell", "Bash", {"x": 1}, ("", "Bash", {"x": 1})),
        ("other", "odd name.v2", {"x": 1}, ("", "odd_name_v2", {"x": 1})),
        ("mcp", "tiny::add", {"x": 1}, ("mcp__tiny", "add", {"x": 1})),
    ],
)
def test_what_codex_does_by_the_shell_and_what_is_a_function_of_its_name(
    kind: ToolKind, name: str, given: dict[str, Any], made: tuple[str, str, dict[str, Any]]
) -> None:
    assert codex_call(call("c", kind, name, **given)) == made


def first_row(**changes: Any) -> dict[str, Any]:
    payload = {"id": THREAD, "cwd": "/w", "history_mode": "paginated", **changes}
    return {"type": "session_meta", "payload": payload}


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        ({}, "does not begin"),
        (first_row(id="another"), "does not begin"),
        (first_row(history_mode="tree"), "unknown form 'tree'"),
        (first_row(forked_from_id="x"), "in another file"),
    ],
)
def test_what_is_no_thread_on_its_own_cannot_be_forked(row: dict[str, Any], problem: str) -> None:
    with pytest.raises(UnwritableError, match=problem):
        CODEX.check_forkable(THREAD, row)


@pytest.mark.parametrize(
    ("version", "known"),
    [
        *(("0.145.0", True), ("v0.169.0 (codex)", True), (None, False), ("0.144.6", False)),
        *(("0.170.0", False), ("0.169.0-alpha.1", False), ("0.169", False)),
    ],
)
def test_only_versions_that_were_tried_can_be_seeded(version: str | None, known: bool) -> None:
    problem = CODEX.seeding_problem(version)
    assert (problem is None) is known
    assert known or "0.145.0 to 0.169.0" in (problem or "")


@pytest.fixture
def trial(tmp_path: Path) -> TrialContext:
    profile = Profile(engine="codex", base_url="http://127.0.0.1:1/v1")
    return make_trial(tmp_path / "parent", profile, version="0.169.0")


def home_of(trial: TrialContext) -> Path:
    return trial.home / "home" / ".codex"


def test_a_history_is_one_private_file_or_is_refused(trial: TrialContext) -> None:
    unknown = anyio.run(CODEX.seed, HISTORY, replace(trial, version=None))
    made = anyio.run(CODEX.seed, HISTORY, trial)
    assert made.session == trial.session_id
    path = CODEX.session_file(home_of(trial), trial.session_id)
    assert path
    assert made.fingerprint
    assert (made.fingerprint.seeded, made.fingerprint.messages) == (True, 1)
    assert loss_of(path, made.fingerprint) is None
    assert [file for file in home_of(trial).rglob("*") if file.is_file()] == [path]
    assert path.stat().st_mode & 0o077 == 0
    meta = json.loads(path.read_bytes().splitlines()[0])["payload"]
    assert meta["model_provider"] == "skillup"
    assert unknown.error
    assert unknown.error.kind == "unsupported"
    assert unknown.session is None


def test_a_fork_has_the_parents_rows_under_its_own_id_and_the_parent_stays(
    trial: TrialContext, tmp_path: Path
) -> None:
    workspace = tmp_path / "child" / "work"
    workspace.mkdir(parents=True)
    home = tmp_path / "child" / "home"
    child = replace(trial, session_id=str(uuid4()), workspace=workspace.resolve(), home=home)
    cwd, there = trial.workspace, child.workspace
    history = [*HISTORY, user(f"<cwd>{cwd}</cwd> {cwd}-2 {cwd.as_uri()}/a"), assistant("TWO")]
    gone = anyio.run(CODEX.fork, "gone", trial, child)
    anyio.run(CODEX.seed, history, trial)
    before = tree_of(home_of(trial))

    forked = anyio.run(CODEX.fork, trial.session_id, trial, child)

    assert gone.error
    assert gone.error.kind == "session_lost"
    assert (forked.error, forked.session) == (None, child.session_id)
    source = CODEX.session_file(home_of(trial), trial.session_id)
    copy = CODEX.session_file(home_of(child), child.session_id)
    assert source
    assert copy
    assert forked.fingerprint == CODEX.fingerprint(copy, child.session_id)
    assert copy.parent.relative_to(home_of(child)) == source.parent.relative_to(home_of(trial))
    assert f"<cwd>{there}</cwd> {cwd}-2 {there.as_uri()}/a" in copy.read_text()
    assert trial.session_id not in copy.read_text()
    assert tree_of(home_of(trial)) == before
