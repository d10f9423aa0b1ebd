"""Sessions that claude did not hold: it goes on from a history, and from copies of a session."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from uuid import uuid4

import anyio
import pytest

from skillup.engines.base import CreatedSession, EngineTurn, SessionForker
from skillup.engines.claude_code.engine import ClaudeCode
from skillup.engines.claude_code.session import CLOSING, OPENING
from skillup.schema.record import HistoryItem
from tests.support.held_turns import Conversation, calls, error_kind
from tests.support.lab_engines import claude_conversation, file_of, state_of
from tests.support.model_server import (
    Answer,
    ModelRequest,
    ModelServer,
    Reply,
    Shell,
    Text,
    ToolCall,
    WriteFile,
)
from tests.support.pasts import SOUP, assistant, call, result, user

pytestmark = pytest.mark.e2e
Serve = Callable[..., ModelServer]
Begin = Callable[..., Conversation]

SOUP_AS_SENT = [
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
]


@pytest.fixture
def begin(claude_cli: Path, tmp_path: Path) -> Begin:
    """`begin(url, base=tmp_path, **profile keys)`: a conversation with claude."""

    def conversation(url: str, base: Path = tmp_path, **keys: object) -> Conversation:
        begun = claude_conversation(claude_cli, base, url, **keys)
        found = anyio.run(begun.engine.check, begun.trial.profile, begun.trial.environment)
        begun.trial = replace(begun.trial, version=found.version)
        return begun

    return conversation


def seed(conversation: Conversation, history: Sequence[HistoryItem]) -> CreatedSession:
    """Puts the history into the conversation's session; what is said next goes on from it."""
    assert isinstance(conversation.engine, ClaudeCode)
    placed = anyio.run(conversation.engine.seed, history, conversation.trial)
    conversation.outcomes.append(EngineTurn(placed.session, fingerprint=placed.fingerprint))
    return placed


def fork(parent: Conversation, base: Path) -> Conversation:
    """A conversation of its own below `base` that goes on from a copy of the parent's session."""
    workspace = base / "workspace"
    workspace.mkdir(parents=True)
    child = replace(
        parent.trial,
        workspace=workspace.resolve(),
        home=base / "trial-home",
        raw_dir=base / "raw",
        session_id=str(uuid4()),
    )
    session = parent.outcomes[-1].session
    assert isinstance(parent.engine, SessionForker)
    assert session is not None
    placed = anyio.run(parent.engine.fork, session, parent.trial, child)
    assert placed.error is None
    held = EngineTurn(placed.session, fingerprint=placed.fingerprint)
    return Conversation(parent.engine, child, [*parent.outcomes, held])


def test_a_history_is_the_beginning_of_the_first_request(begin: Begin, model_server: Serve) -> None:
    server = model_server(lambda request: Text(request.latest.upper()))
    conversation = begin(server.url)

    placed = seed(conversation, SOUP)
    first, second = conversation.say("one"), conversation.say("two")

    assert placed.error is None
    assert placed.notices == ()
    assert placed.fingerprint is not None
    assert placed.fingerprint.messages == 2
    assert [error_kind(first), error_kind(second)] == [None, None]
    assert [first.response, second.response] == ["ONE", "TWO"]
    assert [first.session_verified, second.session_verified] == [True, True]
    assert first.session == second.session == placed.session
    assert [request.conversation for request in server.requests] == [
        [*SOUP_AS_SENT, ("user", "one")],
        [*SOUP_AS_SENT, ("user", "one"), ("assistant", "ONE"), ("user", "two")],
    ]
    assert server.background == []


def test_the_calls_of_a_history_keep_their_results_and_failures(
    begin: Begin, model_server: Serve
) -> None:
    server = model_server()
    conversation = begin(server.url)

    seed(conversation, SOUP)
    conversation.say("go on")

    messages = server.requests[0].body["messages"]
    blocks = [block for m in messages if isinstance(m["content"], list) for block in m["content"]]
    made = {block["id"]: block["name"] for block in blocks if block["type"] == "tool_use"}
    results = {b["tool_use_id"]: b for b in blocks if b["type"] == "tool_result"}
    assert made == {"call_1": "Bash", "call_2": "Read", "call_3": "mcp__kitchen__stock"}
    assert [call_id for call_id, block in results.items() if block.get("is_error")] == ["call_2"]
    assert set(results) == set(made)


def test_the_agent_goes_on_working_after_a_history(begin: Begin, model_server: Serve) -> None:
    def script(request: ModelRequest) -> Reply:
        return (Text("ok"), Shell("echo hi"))[0 if request.tool_round else 1]

    conversation = begin(model_server(script).url)

    seed(conversation, SOUP)
    outcome = conversation.say("work")

    assert [made.arguments["command"] for made in calls(outcome)] == ["echo hi"]
    assert outcome.response == "ok"
    assert outcome.fingerprint is not None
    assert outcome.fingerprint.messages == 3


def test_claude_adds_nothing_at_the_ends_of_a_history(begin: Begin, model_server: Serve) -> None:
    server = model_server()
    conversation = begin(server.url)
    history = [assistant("Welcome!"), user("hi"), assistant("", call("1", "shell", cmd="ls"))]

    placed = seed(conversation, [*history, result("1", "notes.txt")])
    conversation.say("go on")

    assert len(placed.notices) == 2
    assert server.requests[0].conversation == [
        ("user", OPENING),
        ("assistant", "Welcome!"),
        ("user", "hi"),
        ("call", 'Bash {"command": "ls"}'),
        ("result", "notes.txt"),
        ("assistant", CLOSING),
        ("user", "go on"),
    ]
    assert "Continue from where you left off" not in server.requests[0].raw_text


def test_odd_words_arrive_as_they_are(begin: Begin, model_server: Serve) -> None:
    server = model_server()
    conversation = begin(server.url)
    words = [
        "/clear",
        "look at @notes.txt",
        'q " \\ \u2028 \U0001f600\r\nü',
        "<command-name>x",
        "!ls",
    ]
    history = [item for word in words for item in (user(word), assistant(f"You said {word}"))]

    seed(conversation, history)
    conversation.say("go on")

    sent = [
        message for message in server.requests[0].body["messages"] if message["role"] != "system"
    ]
    assert [word for word in words if word not in _texts(sent, "user")] == []
    assert [word for word in words if f"You said {word}" not in _texts(sent, "assistant")] == []


@pytest.mark.parametrize("isolation", ["clean", "shared"])
@pytest.mark.parametrize("long", [False, True])
def test_a_seeded_session_is_found_wherever_the_workspace_is(
    begin: Begin, model_server: Serve, tmp_path: Path, isolation: str, long: bool
) -> None:
    server = model_server()
    conversation = begin(server.url, isolation=isolation)
    deep = Path("with space & ünï", *(["d" * 100] * 2 if long else []), "ws")
    workspace = tmp_path / deep
    workspace.mkdir(parents=True)
    conversation.trial = replace(conversation.trial, workspace=workspace.resolve())

    placed = seed(conversation, SOUP)
    outcome = conversation.say("go on")

    assert placed.error is None
    assert error_kind(outcome) is None
    assert outcome.session_verified is True
    assert server.requests[0].conversation == [*SOUP_AS_SENT, ("user", "go on")]


def test_a_long_history_arrives_whole(begin: Begin, model_server: Serve) -> None:
    server = model_server()
    conversation = begin(server.url)
    history = [item for n in range(300) for item in (user(f"q {n}"), assistant(f"a {n}"))]

    seed(conversation, history)
    conversation.say("go on")

    assert server.requests[0].user_texts == [*(f"q {n}" for n in range(300)), "go on"]
    assert server.requests[0].assistant_texts == [f"a {n}" for n in range(300)]


@pytest.mark.parametrize("when", ["before the first turn", "before the second"])
def test_a_seeded_session_that_was_tampered_with_is_lost(
    begin: Begin, model_server: Serve, when: str
) -> None:
    server = model_server()
    conversation = begin(server.url)
    seed(conversation, SOUP)
    if when == "before the second":
        conversation.say("one")
    path = file_of(conversation)
    path.write_text(path.read_text().replace("walrus", "badger"))
    asked = len(server.requests)

    outcome = conversation.say("go on")

    assert error_kind(outcome) == "session_lost"
    assert len(server.requests) == asked


@pytest.mark.parametrize("isolation", ["clean", "shared"])
def test_forks_go_on_from_the_whole_prefix_and_leave_the_parent_alone(
    begin: Begin, model_server: Serve, tmp_path: Path, isolation: str
) -> None:
    server = model_server(_works_in_its_workspace)
    parent = begin(server.url, isolation=isolation)
    held = [parent.say("work"), parent.say("one")]
    before = _bytes(tmp_path, parent)
    shared = len(server.requests)

    children = [fork(parent, tmp_path / name) for name in ("left", "right")]
    outcomes = [[child.say("two"), child.say("three")] for child in children]

    assert [error_kind(outcome) for outcome in held] == [None, None]
    assert [[error_kind(o) for o in turns] for turns in outcomes] == [[None, None]] * 2
    assert [[o.session_verified for o in turns] for turns in outcomes] == [[True, True]] * 2
    assert [o.fingerprint.messages for o in outcomes[0] if o.fingerprint] == [3, 4]
    assert _bytes(tmp_path, parent) == before
    prefix = server.requests[shared - 1].conversation
    assert len(server.requests) == shared + 4
    for child in children:
        third, fourth = server.requests_of(child.trial.session_id)
        there, here = str(parent.trial.workspace), str(child.trial.workspace)
        moved = [(role, text.replace(there, here)) for role, text in prefix]
        assert third.conversation == [*moved, ("assistant", "ONE"), ("user", "two")]
        assert fourth.conversation[-1] == ("user", "three")
        assert fourth.conversation[: len(third.conversation)] == third.conversation
        assert here in third.raw_text
        assert there not in third.raw_text
        assert parent.trial.session_id not in third.raw_text
    assert parent.say("and you").response == "AND YOU"


def test_a_seeded_session_can_be_forked_and_a_fork_too(
    begin: Begin, model_server: Serve, tmp_path: Path
) -> None:
    server = model_server()
    parent = begin(server.url)
    seed(parent, SOUP)

    child = fork(parent, tmp_path / "child")
    child.say("one")
    grandchild = fork(child, tmp_path / "grandchild")
    outcome = grandchild.say("two")

    assert error_kind(outcome) is None
    assert server.requests[-1].conversation[:-3] == SOUP_AS_SENT
    assert server.requests[-1].user_texts[-2:] == ["one", "two"]


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
    there, here = str(parent.trial.workspace), str(child.trial.workspace)
    assert theirs.name == ours.name
    assert there in theirs.read_text()
    assert here in ours.read_text()
    assert there not in ours.read_text()


def test_a_fork_of_what_is_not_there_says_so(
    begin: Begin, model_server: Serve, tmp_path: Path
) -> None:
    conversation = begin(model_server().url)
    conversation.say("one")
    file_of(conversation).unlink()
    session = conversation.outcomes[-1].session
    assert session is not None

    engine = ClaudeCode()
    placed = anyio.run(engine.fork, session, conversation.trial, conversation.trial)

    assert placed.session is None
    assert placed.error is not None
    assert placed.error.kind == "session_lost"


@pytest.mark.parametrize("version", [None, "1.0.128", "99.0.0"])
def test_a_version_that_is_not_known_is_refused(
    begin: Begin, model_server: Serve, version: str | None
) -> None:
    conversation = begin(model_server().url)
    conversation.trial = replace(conversation.trial, version=version)

    placed = seed(conversation, SOUP)

    assert placed.session is None
    assert placed.error is not None
    assert placed.error.kind == "unsupported"
    assert "npm install" in placed.error.message
    assert not (state_of(conversation) / "projects").exists()


def _works_in_its_workspace(request: ModelRequest) -> Reply:
    """A file, then two calls at once that name the workspace; else the prompt, louder."""
    if request.latest != "work" or request.tool_round > 1:
        return Text(request.latest.upper())
    if request.tool_round == 0:
        return WriteFile("notes.txt", "x\n")
    return Answer((Text("I look."), Shell("pwd"), Shell('echo "{\\"cwd\\": \\"$PWD\\"}"')))


def _texts(messages: Sequence[dict[str, object]], role: str) -> str:
    texts: list[str] = []
    for message in messages:
        content = message["content"]
        blocks = [{"text": content}] if isinstance(content, str) else content
        assert isinstance(blocks, list)
        texts += [block.get("text", "") for block in blocks if message["role"] == role]
    return "\n".join(texts)


def _bytes(base: Path, conversation: Conversation) -> bytes:
    """The session's file, whichever home it is in."""
    [path] = base.rglob(f"{conversation.trial.session_id}.jsonl")
    return path.read_bytes()
