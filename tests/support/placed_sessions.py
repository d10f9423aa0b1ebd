"""Sessions that are written, not run: a history to seed, and forks of conversations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import anyio

from skillup.engines.base import CreatedSession, EngineTurn, HistorySeeder, SessionForker
from skillup.schema.record import HistoryItem
from tests.support.engine_turns import Conversation
from tests.support.model_server import ModelRequest, Reply, Shell, Text, WriteFile
from tests.support.pasts import SOUP, assistant, call, result, user

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


def seed(conversation: Conversation, history: Sequence[HistoryItem]) -> CreatedSession:
    """Put `history` into the conversation's session; what is said next continues it."""
    engine, trial = conversation.engine, conversation.trial
    assert isinstance(engine, HistorySeeder)
    if trial.version is None:
        found = anyio.run(engine.check, trial.profile, trial.environment)
        conversation.trial = replace(trial, version=found.version)
    placed = anyio.run(engine.seed, history, conversation.trial)
    conversation.outcomes.append(EngineTurn(placed.session, fingerprint=placed.fingerprint))
    return placed


def fork(parent: Conversation, base: Path, **changes: Any) -> Conversation:
    """Another conversation, from where `parent` is now; in directories of its own below `base`."""
    workspace = base / "workspace"
    workspace.mkdir(parents=True)
    own = {"workspace": workspace.resolve(), "home": base / "home", "raw_dir": base / "raw"}
    child = replace(parent.trial, **{**own, "session_id": str(uuid4()), **changes})
    session = parent.outcomes[-1].session
    assert isinstance(parent.engine, SessionForker)
    assert session is not None
    placed = anyio.run(parent.engine.fork, session, parent.trial, child)
    assert placed.error is None
    forked = EngineTurn(placed.session, fingerprint=placed.fingerprint)
    return Conversation(parent.engine, child, [*parent.outcomes, forked])
