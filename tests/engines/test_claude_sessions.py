"""Claude's session files: where they are, what counts in them, histories and copies."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from uuid import UUID

import anyio
import pytest

from skillup.checks.tools import PORTABLE_ARGUMENTS, argument
from skillup.engines.base import NoStreams, TrialContext
from skillup.engines.claude_code.engine import (
    CLOSING,
    OPENING,
    ClaudeCode,
    claude_call,
    project_folder,
)
from skillup.engines.claude_code.events import take_block
from skillup.engines.created_sessions import UnwritableError, with_own_ids
from skillup.engines.events import Transcript
from skillup.engines.session_files import json_line
from skillup.schema.checks import ToolKind
from skillup.schema.profile import Profile
from skillup.schema.record import HistoryItem
from tests.support.engine_turns import make_trial
from tests.support.pasts import SOUP, assistant, call, result, user
from tests.support.session_files import read, told

SESSION = "5d6a3c4e-0000-4000-8000-000000000000"
CHILD = "5d6a3c4e-0000-4000-8000-000000000002"
WORKSPACE = Path("/tmp/work space")


def rows_and_notices(
    history: Sequence[HistoryItem], workspace: Path = WORKSPACE
) -> tuple[list[dict[str, Any]], Sequence[str]]:
    no, nowhere = dict[str, str](), Path()
    profile = Profile(engine="claude_code")
    places = (workspace, nowhere, NoStreams())
    trial = TrialContext(profile, *places, no, no, "marker", SESSION, version="2.1.197")
    return ClaudeCode().history_rows(with_own_ids(history), trial)


def written(history: Sequence[HistoryItem], workspace: Path = WORKSPACE) -> list[bytes]:
    return [json_line(row) for row in rows_and_notices(history, workspace)[0]]


def rows_of(history: Sequence[HistoryItem]) -> list[dict[str, Any]]:
    """The lines of the session's file."""
    return [json.loads(line) for line in written(history)]


@pytest.mark.parametrize(
    ("entry", "counts"),
    [
        ({"message": {"content": "hello"}}, True),
        ({"message": {"content": [{"type": "text", "text": "hello"}]}}, True),
        ({"message": {"content": [{"type": "text", "text": ""}]}}, False),
        ({"message": {"content": [{"type": "tool_result", "content": "x"}]}}, False),
        ({"message": {"content": "caveat"}, "isMeta": True}, False),
        ({"message": {"content": "to the sub-agent"}, "isSidechain": True}, False),
        ({"message": {"content": "[Request interrupted by user]"}}, False),
        ({"message": {"content": "hello"}, "type": "assistant"}, False),
        ({}, False),
        ({"message": []}, False),
    ],
)
def test_only_what_somebody_sent_is_a_user_message(entry: dict[str, Any], counts: bool) -> None:
    assert ClaudeCode().is_user_message({"type": "user", **entry}) is counts


@pytest.mark.parametrize(
    ("directory", "slug"),
    [
        ("/tmp/x/My Project_1.2", "-tmp-x-My-Project-1-2"),
        ("/ü/é", "----"),
        ("/\U0001f600", "---"),
        ("/" + "a" * 199, "-" + "a" * 199),
    ],
)
def test_the_folder_of_a_workspace(directory: str, slug: str) -> None:
    assert project_folder(Path("/home"), Path(directory)) == Path("/home/projects") / slug
    with pytest.raises(UnwritableError, match="longer than 200"):
        project_folder(Path("/home"), Path("/" + "a" * 200))


def test_the_session_is_found_by_its_id_under_any_slug(tmp_path: Path) -> None:
    path = tmp_path / "projects" / "-some-long-slug-1a2b3c" / f"{SESSION}.jsonl"
    path.parent.mkdir(parents=True)
    lines = [{"type": "user", "message": {"content": "hello"}}, {"type": "mode"}]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines) + "not JSON\n[1]\n")
    taken = ClaudeCode().fingerprint(path, SESSION)
    assert ClaudeCode().session_file(tmp_path, SESSION) == path
    assert taken is not None
    assert (taken.messages, taken.prefix_bytes) == (1, path.stat().st_size)
    assert ClaudeCode().session_file(tmp_path, "*") is None
    assert ClaudeCode().fingerprint(None, "another") is None


def test_the_lines_are_a_chain_with_one_message_for_each_answer() -> None:
    rows = rows_of(SOUP)
    assert [row["parentUuid"] for row in rows] == [None, *(row["uuid"] for row in rows[:-1])]
    assert len({UUID(row["uuid"]) for row in rows}) == len(rows)
    about = {(row["sessionId"], row["cwd"], row["version"]) for row in rows}
    assert about == {(SESSION, str(WORKSPACE), "2.1.197")}
    times = [row["timestamp"] for row in rows]
    assert times == sorted(set(times))
    messages = [row["message"] for row in rows if row["type"] == "assistant"]
    ids = [message["id"] for message in messages]
    assert [ids.count(id_) for id_ in dict.fromkeys(ids)] == [3, 1, 1, 1]
    assert all(message["model"] for message in messages)
    kinds = [[block["type"] for block in message["content"]] for message in messages]
    assert kinds == [["text"], *[["tool_use"]] * 3, ["text"], ["text"]]


def test_results_and_their_ids_are_such_as_the_api_takes() -> None:
    calls = [call(id_, "shell", command="x") for id_ in "abc"]
    past = [user("go"), assistant("", *calls), result("a", "", "error"), result("b", "", "unknown")]
    contents = [row["message"]["content"] for row in rows_of([*past, result("c", "fine")])]
    failed = {"tool_use_id": "call_1", "content": "(no output)", "is_error": True}
    assert [content[0] for content in contents[4:7]] == [
        {"type": "tool_result", **failed},
        {"type": "tool_result", "tool_use_id": "call_2", "content": ""},
        {"type": "tool_result", "tool_use_id": "call_3", "content": "fine"},
    ]
    one_round = [assistant("", call("call:1", "shell", command="x")), result("call:1", "y")]
    rows = rows_of([user("go"), *one_round, *one_round])
    blocks = [b for row in rows for b in row["message"]["content"] if isinstance(b, dict)]
    made = [block["id"] for block in blocks if block["type"] == "tool_use"]
    answered = [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"]
    assert made == answered == ["call_1", "call_2"]


@pytest.mark.parametrize(
    ("history", "first", "last"),
    [
        ([user("a"), assistant("b")], "a", "b"),
        ([assistant("b")], OPENING, "b"),
        ([user("a"), assistant("b"), user("c")], "a", CLOSING),
        ([user("a"), assistant("", call("1")), result("1", "x")], "a", CLOSING),
        # Claude's own note, and no message to our fingerprint either.
        ([user("[Request interrupted by user]"), assistant("b")], OPENING, "b"),
        ([user(" "), assistant("\n"), user("a"), assistant("b")], "a", "b"),
    ],
)
def test_the_ends_are_such_that_claude_adds_nothing(
    history: Sequence[HistoryItem], first: str, last: str
) -> None:
    rows, notices = rows_and_notices(history)
    messages = [row["message"] for row in rows]
    assert (messages[0]["content"], messages[-1]["content"][0]["text"]) == (first, last)
    assert len(notices) == (first == OPENING) + (last == CLOSING)
    with pytest.raises(UnwritableError):
        written([user(" "), assistant("")])


def test_what_json_or_unicode_do_not_have_makes_no_broken_line(tmp_path: Path) -> None:
    odd = call("1", "other", "tool", number=float("nan"), path=Path("/a"))
    past = [user("half a \ud83d pair"), assistant("b", odd), result("1", "\x00"), assistant("c")]
    file = tmp_path / "s.jsonl"
    file.write_bytes(b"".join(written(past)))
    entries, summary = read(file)
    assert summary.unknown_lines == 0
    assert entries[0].item.text == "half a \ufffd pair"
    arguments = [e.item.tool_call.arguments for e in entries if e.item.tool_call]
    assert arguments == [{"number": "NaN", "path": "/a"}]


URL = "https://a.example"
EDITED = {"file_path": "a", "old_string": "x", "new_string": "y"}


@pytest.mark.parametrize(
    ("kind", "named", "given_arguments", "name", "arguments"),
    [
        ("shell", "", {"command": "ls", "description": "Lists"}, "Bash", None),
        ("shell", "", {"cmd": ["ls", "a b"]}, "Bash", {"command": "ls 'a b'"}),
        ("write", "", {"path": "a", "text": "x"}, "Write", {"file_path": "a", "content": "x"}),
        ("edit", "", {"filename": "a", "old": "x", "new": "y"}, "Edit", EDITED),
        ("search", "", {"query": "x", "path": "s"}, "Grep", {"pattern": "x", "path": "s"}),
        ("web", "", {"uri": URL}, "WebFetch", {"url": URL}),
        ("web", "", {"q": "soup"}, "WebSearch", {"query": "soup"}),
        ("read", "", {"path": "a", "file_path": "b"}, "Read", None),
        ("read", "", {"path": "a", "filename": "b"}, "Read", {"file_path": "a", "filename": "b"}),
        # A call with a name keeps it and its arguments.
        ("shell", "Bash", {"path": "a", "cmd": ["ls"]}, "Bash", None),
        ("shell", "my tool.v2", {"path": "a"}, "my_tool_v2", None),
        ("shell", "kitchen::stock", {}, "mcp__kitchen__stock", None),
        ("shell", "::", {}, "mcp__unknown__tool", None),
    ],
)
def test_a_portable_call_is_that_of_claudes_tool(
    kind: ToolKind,
    named: str,
    given_arguments: dict[str, Any],
    name: str,
    arguments: dict[str, Any] | None,
) -> None:
    expected = given_arguments if arguments is None else arguments
    assert claude_call(call("1", kind, named, **given_arguments)) == (name, expected)


@pytest.mark.parametrize(
    ("kind", "portable"), [(kind, name) for kind, of in PORTABLE_ARGUMENTS.items() for name in of]
)
def test_a_check_finds_portable_arguments_in_claudes_call(kind: ToolKind, portable: str) -> None:
    name, arguments = claude_call(call("1", kind, **{portable: "value"}))
    transcript = Transcript()
    take_block(transcript, {"type": "tool_use", "id": "1", "name": name, "input": arguments}, None)
    recorded = transcript.items[0].tool_call
    assert recorded is not None
    assert recorded.kind == kind
    found = argument(recorded, portable)
    assert found is not None
    assert found.value == "value"


@pytest.mark.parametrize("shared", [False, True])
def test_a_fork_is_the_same_conversation_at_another_place(tmp_path: Path, shared: bool) -> None:
    """With the files that belong to it, and nothing of another session's."""
    changes: dict[str, Any] = {"environment": {"HOME": str(tmp_path / "user")}}
    profile = Profile(engine="claude_code", isolation="shared" if shared else "clean")
    parent, child = (
        make_trial(tmp_path / name, profile, session_id=session_id, **changes)
        for name, session_id in (("parent", SESSION), ("child", CHILD))
    )
    engine = ClaudeCode()
    there, here = str(parent.workspace), str(child.workspace)
    source = project_folder(engine.engine_home(parent), parent.workspace) / f"{SESSION}.jsonl"
    said = [
        user(f"work in {there}, not in {there}2"),
        assistant("", call("1", "write", path=f"{there}/notes.txt", content="x")),
        result("1", f"kept in {source.with_suffix('')}/tool-results/1.txt"),
        assistant("done"),
    ]
    thought = {"type": "thinking", "thinking": f"in {there}2", "signature": "s"}
    row = {"type": "assistant", "message": {"content": [thought]}}
    agent_row = json.dumps({"cwd": there, "agentId": "a1"}).encode()
    for target, content in {
        source: b"".join([*written([*SOUP, *said], parent.workspace), json.dumps(row).encode()]),
        source.with_suffix("") / "subagents/agent-a1.jsonl": agent_row,
        source.with_suffix("") / "tool-results/1.txt": f"output of {there}".encode(),
        engine.engine_home(parent) / "tasks" / SESSION / "1.json": b"{}",
    }.items():
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)

    forked = anyio.run(engine.fork, SESSION, parent, child)

    assert forked.error is None
    copy = project_folder(engine.engine_home(child), child.workspace) / f"{CHILD}.jsonl"
    own = copy.with_suffix("")
    assert json.loads((own / "subagents/agent-a1.jsonl").read_bytes())["cwd"] == here
    assert (own / "tool-results/1.txt").read_text() == f"output of {here}"
    assert (engine.engine_home(child) / "tasks" / CHILD / "1.json").is_file()
    (old, _), (new, summary) = read(source), read(copy)
    assert [told(entry) for entry in new] == [
        (role, text.replace(f"{there},", f"{here},").replace(str(source.with_suffix("")), str(own)))
        for role, text in map(told, old)
    ]
    assert (summary.session_id, summary.cwd) == (CHILD, here)
    text = copy.read_text()
    assert SESSION not in text
    # What only begins like the workspace stays, and so do thoughts, which are signed.
    assert text.count(there) == text.count(f"{there}2") == 2
