"""Forks of threads of the real `codex`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from hashlib import sha256
from pathlib import Path
from uuid import uuid4

import anyio
import pytest

from skillup.engines.codex.engine import Codex
from skillup.engines.codex.rollout import session_file
from tests.support.held_turns import Conversation, calls, error_kind
from tests.support.lab_engines import file_of, state_of
from tests.support.model_server import ModelRequest, ModelServer
from tests.support.placed_threads import (
    AS_SENT,
    USAGE,
    answer,
    begin_with_version,
    forked,
    seeded,
)

pytestmark = pytest.mark.e2e
Serve = Callable[..., ModelServer]
Begin = Callable[..., Conversation]


@pytest.fixture
def begin(codex_cli: Path, tmp_path: Path) -> Begin:
    """`begin(url, **profile keys)`: a conversation with codex."""
    return partial(begin_with_version, codex_cli, tmp_path / "parent")


def roles(request: ModelRequest) -> list[str]:
    return [entry.role for entry in request.entries]


def digest(path: Path) -> str:
    return sha256(path.read_bytes()).hexdigest()


def test_two_forks_go_on_from_the_same_prefix_and_leave_it_alone(
    begin: Begin, model_server: Serve, tmp_path: Path
) -> None:
    server = model_server(answer)
    parent = begin(server.url)
    parent.say("work")
    parent.say("two")
    held = server.requests[-1]
    prefix = [*held.conversation, ("assistant", "Turn 2: two")]
    path = file_of(parent)
    before, sent_before = digest(path), len(server.requests)

    children = [forked(parent, tmp_path / name) for name in ("left", "right")]
    assert len(server.requests) == sent_before
    outcomes = [child.say(word) for child, word in zip(children, ("left", "right"), strict=True)]
    again = [child.say("more") for child in children]

    assert [error_kind(outcome) for outcome in [*outcomes, *again]] == [None] * 4
    assert [o.session_verified for o in [*outcomes, *again]] == [True] * 4
    assert [o.response for o in outcomes] == ["Turn 3: left", "Turn 3: right"]
    assert [o.fingerprint.messages for o in outcomes if o.fingerprint] == [3, 3]
    for child, outcome, word in zip(children, outcomes, ("left", "right"), strict=True):
        assert outcome.session is not None
        assert outcome.session.id == child.trial.session_id
        mine = server.requests_of(child.trial.session_id)
        moved = [
            (role, text.replace(str(parent.trial.workspace), str(child.trial.workspace)))
            for role, text in prefix
        ]
        assert mine[0].conversation == [*moved, ("user", word)]
        # The environment is not told a second time: nothing of it has changed.
        assert roles(mine[0]).count("harness") == roles(held).count("harness")
        assert len(mine) == 2
        for request in mine:
            assert request.cwd == str(child.trial.workspace)
            assert str(parent.trial.workspace) not in request.raw_text
            assert str(parent.trial.home) not in request.raw_text
        assert outcome.usage is not None
        assert outcome.usage.model_dump(exclude={"requests"}) == USAGE
        assert calls(outcome) == []
    assert digest(path) == before
    assert server.background == []

    own = parent.say("three")

    assert error_kind(own) is None
    assert own.session_verified is True
    assert server.requests[-1].conversation == [*prefix, ("user", "three")]


def test_a_fork_in_the_home_of_its_parent_and_a_fork_of_that(
    begin: Begin, model_server: Serve, tmp_path: Path
) -> None:
    server = model_server(answer)
    home = tmp_path / "users" / ".codex"
    parent = begin(server.url, isolation="shared")
    environment = {**parent.trial.environment, "CODEX_HOME": str(home)}
    parent.trial = replace(parent.trial, environment=environment)
    home.mkdir(parents=True)
    parent.say("one")

    child = forked(parent, tmp_path / "child")
    child.say("two")
    grandchild = forked(child, tmp_path / "grandchild")
    last = grandchild.say("three")
    own = parent.say("other")

    assert error_kind(last) is None
    assert last.session_verified is True
    assert last.usage is not None
    assert last.usage.model_dump(exclude={"requests"}) == USAGE
    prefix = [("user", "one"), ("assistant", "Turn 1: one")]
    assert server.requests[2].conversation == [
        *prefix,
        ("user", "two"),
        ("assistant", "Turn 2: two"),
        ("user", "three"),
    ]
    assert server.requests[2].cwd == str(grandchild.trial.workspace)
    assert error_kind(own) is None
    assert server.requests[3].conversation == [*prefix, ("user", "other")]
    sessions = [c.outcomes[-1].session for c in (parent, child, grandchild)]
    files = {session_file(home, session.id) for session in sessions if session}
    assert len(files) == 3


def test_a_fork_of_a_seeded_thread_holds_its_history(
    begin: Begin, model_server: Serve, tmp_path: Path
) -> None:
    server = model_server(answer)
    parent = begin(server.url)
    seeded(parent)

    at_once = forked(parent, tmp_path / "at-once").say("now")
    parent.say("one")
    later = forked(parent, tmp_path / "later").say("then")

    assert [error_kind(at_once), error_kind(later)] == [None, None]
    assert server.requests[0].conversation == [*AS_SENT, ("user", "now")]
    live = [("user", "one"), ("assistant", "Turn 3: one"), ("user", "then")]
    assert server.requests[-1].conversation == AS_SENT + live


def test_a_fork_that_somebody_changes_is_not_believed(
    begin: Begin, model_server: Serve, tmp_path: Path
) -> None:
    server = model_server(answer)
    parent = begin(server.url)
    parent.say("one")
    child = forked(parent, tmp_path / "child")
    path = session_file(state_of(child), child.trial.session_id)
    assert path is not None
    path.write_bytes(path.read_bytes().replace(b"Turn 1: one", b"Turn 1: two"))

    outcome = child.say("two")

    assert error_kind(outcome) == "session_lost"
    assert len(server.requests) == 1


def test_a_thread_without_a_file_cannot_be_forked(
    begin: Begin, model_server: Serve, tmp_path: Path
) -> None:
    parent = begin(model_server(answer).url)
    outcome = parent.say("one")
    assert outcome.session is not None
    file_of(parent).unlink()
    child = replace(parent.trial, home=tmp_path / "home", session_id=str(uuid4()))

    placed = anyio.run(Codex().fork, outcome.session, parent.trial, child)

    assert placed.error is not None
    assert placed.error.kind == "session_lost"
