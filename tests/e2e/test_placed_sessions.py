"""Sessions that the real CLIs did not run: they continue a history, and copies of a session.

These are the proof for the versions whose sessions are written: run them with a version's command
in SKILLUP_TEST_CLAUDE or SKILLUP_TEST_CODEX before adding it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import anyio
import pytest

from skillup.engines.base import EngineTurn, HistorySeeder, SessionForker
from skillup.engines.claude_code.engine import CLOSING, OPENING
from skillup.schema.record import HistoryItem
from tests.e2e.conftest import Begin, Serve, file_of, state_of
from tests.support.engine_turns import Conversation, error_kind
from tests.support.model_server import ModelRequest, Reply, Shell, Text, ToolCall, WriteFile
from tests.support.pasts import SOUP, assistant, call, result, user
from tests.support.session_files import read

pytestmark = pytest.mark.e2e
slow = pytest.mark.slow
only_claude = pytest.mark.parametrize("engine", ["claude"])
only_codex = pytest.mark.parametrize("engine", ["codex"])

HISTORY = (
    user("the codeword is walrus"),
    assistant(
        "Looking.",
        call("c1", "shell", command="cat x"),
        call("c2", "write", path="a.txt", content="one\ntwo\n"),
        call("c3", "mcp", "tiny::add", a=2, b=3),
        call("c4", "other", "FancyTool", z=[1]),
    ),
    result("c2", "done"),
    result("c1", "no x", "error"),
    result("c3", "5"),
    result("c4", "fancy"),
    assistant("Noted."),
    user("and the number is 7"),
    assistant("Noted."),
)
PASTS: dict[str, Sequence[HistoryItem]] = {"claude": SOUP, "codex": HISTORY}
AS_SENT = {
    "claude": [
        ("user", "What soup do I like?"),
        ("assistant", "I look."),
        ("call", 'Bash {"command": "cat likes.txt"}'),
        ("call", 'Read {"file_path": "dislikes.txt"}'),
        ("result", "no such file"),
        ("result", "lentil soup"),
        ("call", 'mcp__kitchen__stock {"soup": "lentil"}'),
        ("result", "two tins"),
        ("assistant", "Lentil soup; there are two tins."),
        ("user", "Remember: the codeword is walrus."),
        ("assistant", "Noted."),
    ],
    "codex": [
        ("user", "the codeword is walrus"),
        ("assistant", "Looking."),
        ("call", 'exec_command {"cmd": "cat x"}'),
        ("call", 'write {"path": "a.txt", "content": "one\\ntwo\\n"}'),
        ("call", 'add {"a": 2, "b": 3}'),
        ("call", 'FancyTool {"z": [1]}'),
        ("result", "done"),
        ("result", "Process exited with code 1\nOutput:\nno x"),
        ("result", "5"),
        ("result", "fancy"),
        ("assistant", "Noted."),
        ("user", "and the number is 7"),
        ("assistant", "Noted."),
    ],
}
"""The two pasts as the model is sent them."""


def answer(request: ModelRequest) -> Reply:
    """The script: `work` writes a file and runs a command; anything else is counted and said."""
    if request.latest == "work" and request.tool_round == 0:
        return Shell("pwd; cat $PWD/notes.txt"), WriteFile("notes.txt", f"{request.cwd}/\n")
    return Text(f"Turn {len(request.user_texts)}: {request.latest}")


def seed(conversation: Conversation, history: Sequence[HistoryItem]) -> EngineTurn:
    """Put `history` into the conversation's session; what is said next continues it."""
    engine, trial = conversation.engine, conversation.trial
    assert isinstance(engine, HistorySeeder)
    if trial.version is None:
        found = anyio.run(engine.check, trial.profile, trial.environment)
        conversation.trial = replace(trial, version=found.version)
    placed = anyio.run(engine.seed, history, conversation.trial)
    conversation.outcomes.append(placed)
    return placed


def fork(parent: Conversation, base: Path, **changes: Any) -> Conversation:
    """Another conversation, from where `parent` is now; in directories of its own below `base`."""
    workspace = base / "workspace"
    workspace.mkdir(parents=True)
    own = {"workspace": workspace.resolve(), "home": base / "home"}
    child = replace(parent.trial, **{**own, "session_id": str(uuid4()), **changes})
    session = parent.outcomes[-1].session
    assert isinstance(parent.engine, SessionForker)
    assert session is not None
    placed = anyio.run(parent.engine.fork, session, parent.trial, child)
    assert placed.error is None
    return Conversation(parent.engine, child, [*parent.outcomes, placed])


@only_claude
def test_claude_adds_nothing_at_the_ends_of_a_history_and_keeps_failed_calls(
    begin: Begin, model_server: Serve
) -> None:
    server = model_server()
    conversation = begin(server.url)
    history = [assistant("Welcome!"), user("hi"), assistant("", call("1", "shell", cmd="ls"))]

    placed = seed(conversation, [*history, result("1", "no such command", "error")])
    conversation.say("go on")

    assert len(placed.notices) == 2
    assert server.requests[0].conversation == [
        ("user", OPENING),
        ("assistant", "Welcome!"),
        ("user", "hi"),
        ("call", 'Bash {"command": "ls"}'),
        ("result", "no such command"),
        ("assistant", CLOSING),
        ("user", "go on"),
    ]
    messages = server.requests[0].body["messages"]
    blocks = [block for m in messages if isinstance(m["content"], list) for block in m["content"]]
    assert [b.get("is_error") for b in blocks if b["type"] == "tool_result"] == [True]


@only_codex
def test_codex_continues_a_history_of_the_assistant_alone(
    begin: Begin, model_server: Serve
) -> None:
    """Also with the built-in provider."""
    server = model_server(answer)
    address = {"base_url": None, "args": ["-c", f'openai_base_url="{server.url}/v1"']}
    conversation = begin(server.url, **address)

    greeting = assistant("How can I help?", call("c1", "shell", command="ls"))
    seed(conversation, (greeting, result("c1", "a.txt")))
    outcomes = [conversation.say("one"), conversation.say("two")]

    assert [error_kind(outcome) for outcome in outcomes] == [None, None]
    assert [outcome.session_verified for outcome in outcomes] == [True, True]
    assert server.requests[-1].conversation[:4] == [
        ("assistant", "How can I help?"),
        ("call", 'exec_command {"cmd": "ls"}'),
        ("result", "Process exited with code 0\nOutput:\na.txt"),
        ("user", "one"),
    ]


def test_a_long_history_of_odd_words_arrives_whole(begin: Begin, model_server: Serve) -> None:
    server = model_server(answer)
    conversation = begin(server.url)
    odd = ["/clear", "look at @notes.txt", "!ls", 'q " \\ \u2028 \U0001f600\nü']
    words = [f"{odd[n % len(odd)]} {n}" for n in range(150)]

    seed(conversation, [said for w in words for said in (user(w), assistant(f"Said {w}"))])
    outcome = conversation.say("one")

    assert error_kind(outcome) is None
    assert server.requests[0].user_texts == [*words, "one"]
    assert server.requests[0].assistant_texts == [f"Said {word}" for word in words]


@only_claude
@pytest.mark.parametrize(("isolation", "parts"), [("clean", 1), ("shared", 0)])
def test_claude_finds_a_seeded_session_wherever_the_workspace_is(
    begin: Begin, model_server: Serve, tmp_path: Path, isolation: str, parts: int
) -> None:
    server = model_server()
    conversation = begin(server.url, isolation=isolation)
    workspace = tmp_path / Path("with space & ünï", *["d" * 100] * parts, "ws")
    workspace.mkdir(parents=True)
    conversation.trial = replace(conversation.trial, workspace=workspace.resolve())

    seed(conversation, PASTS["claude"])
    outcome = conversation.say("go on")

    assert error_kind(outcome) is None
    assert outcome.session_verified is True
    assert server.requests[0].conversation == [*AS_SENT["claude"], ("user", "go on")]


@pytest.mark.parametrize(
    ("engine", "isolation"),
    [("claude", "clean"), ("codex", "clean"), pytest.param("codex", "shared", marks=slow)],
)
def test_forks_continue_the_whole_prefix_and_leave_the_parent_alone(
    begin: Begin, model_server: Serve, tmp_path: Path, isolation: str
) -> None:
    server = model_server(answer)
    parent = begin(server.url, isolation=isolation)
    if isolation == "shared":
        home = tmp_path / "users" / ".codex"
        home.mkdir(parents=True)
        environment = {**parent.trial.environment, "CODEX_HOME": str(home)}
        parent.trial = replace(parent.trial, environment=environment)
    parent.say("work")
    parent.say("two")
    prefix = [*server.requests[-1].conversation, ("assistant", "Turn 2: two")]
    before, sent_before = _session_bytes(tmp_path, parent), len(server.requests)

    children = [fork(parent, tmp_path / name) for name in ("left", "right")]
    assert len(server.requests) == sent_before
    outcomes = [[child.say(word) for word in ("three", "four")] for child in children]
    grandchild = fork(children[0], tmp_path / "grandchild")
    last = grandchild.say("five")

    assert [error_kind(o) for turns in outcomes for o in turns] == [None] * 4
    assert [o.session_verified for turns in outcomes for o in turns] == [True] * 4
    assert [o.fingerprint.messages for o in outcomes[0] if o.fingerprint] == [3, 4]
    assert _session_bytes(tmp_path, parent) == before
    assert server.background == []
    there = str(parent.trial.workspace)
    for child in children:
        here = str(child.trial.workspace)
        third, fourth = server.requests_of(child.trial.session_id)
        moved = [(role, text.replace(there, here)) for role, text in prefix]
        assert third.conversation == [*moved, ("user", "three")]
        assert fourth.conversation[: len(third.conversation)] == third.conversation
        # The environment is not told a second time: nothing of it has changed.
        assert here in third.raw_text
        assert there not in third.raw_text
        assert parent.trial.session_id not in third.raw_text
    assert (error_kind(last), last.session_verified) == (None, True)
    assert server.requests[-1].user_texts == ["work", "two", "three", "four", "five"]
    assert parent.say("and you").response == "Turn 3: and you"


def test_a_seeded_session_can_be_forked_and_a_changed_fork_is_not_believed(
    begin: Begin, model_server: Serve, engine: str, tmp_path: Path
) -> None:
    server = model_server(answer)
    parent = begin(server.url)
    seed(parent, PASTS[engine])

    child = fork(parent, tmp_path / "child")
    outcome = child.say("now")
    entries, summary = read(file_of(child))
    changed = fork(child, tmp_path / "changed")
    (path,) = state_of(changed).rglob(f"*{changed.trial.session_id}.jsonl")
    path.write_bytes(path.read_bytes().replace(b"walrus", b"badger"))

    assert error_kind(outcome) is None
    assert server.requests[0].conversation == [*AS_SENT[engine], ("user", "now")]
    if engine == "codex":
        # It reads like one that ran.
        assert (summary.unknown_lines, summary.turns) == (0, 3)
        said = [entry.item.text for entry in entries if entry.role in ("user", "assistant")]
        past = [text for role, text in AS_SENT[engine] if role in ("user", "assistant")]
        assert said == [*past, "now", "Turn 3: now"]
        results = {r.call_id: r.status for entry in entries if (r := entry.item.tool_result)}
        assert results == {"call_1": "error", **{f"call_{n}": "unknown" for n in (2, 3, 4)}}
    assert error_kind(changed.say("two")) == "session_lost"
    assert len(server.requests) == 1


@only_claude
def test_the_files_of_sub_agents_go_with_a_fork(
    begin: Begin, model_server: Serve, tmp_path: Path
) -> None:
    task = {"description": "look", "prompt": "look around", "subagent_type": "general-purpose"}

    def script(request: ModelRequest) -> Reply:
        if request.latest == "delegate" and request.tool_round == 0:
            return ToolCall("Agent", {**task, "run_in_background": False})
        if request.latest == "look around" and request.tool_round == 0:
            return Shell("pwd")
        return Text(request.latest.upper())

    parent = begin(model_server(script).url)
    assert error_kind(parent.say("delegate")) is None

    child = fork(parent, tmp_path / "child")

    assert error_kind(child.say("go on")) is None
    [theirs] = file_of(parent).with_suffix("").glob("subagents/*.jsonl")
    [ours] = file_of(child).with_suffix("").glob("subagents/*.jsonl")
    assert theirs.name == ours.name


def _session_bytes(base: Path, conversation: Conversation) -> bytes:
    """The session's file, whichever home it is in."""
    session = conversation.outcomes[-1].session
    assert session is not None
    [path] = base.rglob(f"*{session}.jsonl")
    return path.read_bytes()
