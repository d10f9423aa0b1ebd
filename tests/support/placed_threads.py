"""Threads of codex that are written, not held: a history to seed, and forks of conversations."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import anyio

from skillup.engines.base import CreatedSession, EngineTurn
from skillup.engines.codex.engine import Codex
from skillup.schema.record import HistoryItem
from tests.support.held_turns import Conversation
from tests.support.lab_engines import codex_conversation
from tests.support.model_server import ModelRequest, Reply, Shell, Text, WriteFile
from tests.support.pasts import assistant, call, result, user

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
# As the model is sent it.
AS_SENT = [
    ("user", "the codeword is walrus"),
    ("assistant", "Looking."),
    ("call", 'exec_command {"cmd": "cat x"}'),
    ("call", "apply_patch *** Begin Patch\n*** Add File: a.txt\n+one\n+two\n*** End Patch\n"),
    ("call", 'add {"a": 2, "b": 3}'),
    ("call", 'FancyTool {"z": [1]}'),
    ("result", "Exit code: 0\nOutput:\ndone"),
    ("result", "Process exited with code 1\nOutput:\nno x"),
    ("result", "5"),
    ("result", "fancy"),
    ("assistant", "Noted."),
    ("user", "and the number is 7"),
    ("assistant", "Noted."),
]
# What each answer takes; how many requests that was, 0.150 does not tell.
USAGE = {
    "input_tokens": 100,
    "cached_input_tokens": 7,
    "cache_write_tokens": 0,
    "output_tokens": 10,
    "reasoning_tokens": 0,
}


def begin_with_version(cli: Path, base: Path, url: str, **keys: object) -> Conversation:
    """A conversation with codex, whose version is known, as it is in a trial."""
    conversation = codex_conversation(cli, base, url, **keys)
    trial = conversation.trial
    found = anyio.run(Codex().check, trial.profile, trial.environment)
    conversation.trial = replace(trial, version=found.version)
    return conversation


def answer(request: ModelRequest) -> Reply:
    """The script: `work` runs a command and writes a file; anything else is counted and said."""
    if request.latest == "work" and request.tool_round == 0:
        return Shell("pwd; cat $PWD/notes.txt"), WriteFile("notes.txt", f"{request.cwd}/\n")
    return Text(f"Turn {len(request.user_texts)}: {request.latest}")


def seeded(
    conversation: Conversation, history: tuple[HistoryItem, ...] = HISTORY
) -> CreatedSession:
    """The conversation, going on from a history."""
    placed = anyio.run(Codex().seed, history, conversation.trial)
    assert placed.error is None
    conversation.outcomes.append(EngineTurn(placed.session, fingerprint=placed.fingerprint))
    return placed


def forked(conversation: Conversation, base: Path, **changes: Any) -> Conversation:
    """Another conversation, from where this one is now; in directories of its own."""
    workspace = base / "workspace"
    workspace.mkdir(parents=True)
    child = replace(
        conversation.trial,
        **{
            "workspace": workspace.resolve(),
            "home": base / "home",
            "raw_dir": base / "raw",
            "session_id": str(uuid4()),
            **changes,
        },
    )
    session = conversation.outcomes[-1].session
    assert session is not None
    placed = anyio.run(Codex().fork, session, conversation.trial, child)
    assert placed.error is None
    outcome = EngineTurn(placed.session, fingerprint=placed.fingerprint)
    return Conversation(conversation.engine, child, [outcome])
