"""A fork has all that its parent had, and its parent stays as it was."""

from __future__ import annotations

from pathlib import Path

import pytest

from skillup.engines.base import EngineTurn, TrialContext
from skillup.engines.scripted.engine import ScriptedEngine
from skillup.schema.record import TurnError
from skillup.trial.run import run_shared_prefix, run_trial
from skillup.trial.setup import OpenTrial
from tests.support.engine_turns import KeptStreams
from tests.support.plans import jobs_of, request_of

pytestmark = pytest.mark.anyio

CASE = """
input:
  turns:
    - content: make
      branches: [{name: a, turns: [look]}, {name: b, turns: [look]}]
assertions: [{contains: x}]
scripted:
  - when: make
    steps:
      - run: >-
          printf x > a.txt; chmod 600 a.txt; mkdir -p d/e; ln -s a.txt near;
          ln -s "$PWD/a.txt" far; ln -s /etc/hosts out; git init -q; printf y > .git/own
    say: made
  - {when: look, steps: [{run: "cat near far .git/own; test -d d/e; readlink out far"}], say: "{{output}}"}
"""  # noqa: E501


@pytest.fixture
def anyio_backend() -> str:
    """Trials run on asyncio."""
    return "asyncio"


class Defect(ScriptedEngine):
    """An engine whose forks fail."""

    async def fork(self, session: str, parent: TrialContext, child: TrialContext) -> EngineTurn:
        """A defect."""
        raise LookupError(session)


async def forked(tmp_path: Path, engine: ScriptedEngine) -> tuple[OpenTrial | TurnError, Path]:
    """The fork of the first branch, and the parent's workspace."""
    first, second = jobs_of(tmp_path, CASE)
    shared = await run_shared_prefix(request_of(tmp_path, first, engine, "parent"), 1)
    assert not shared.ended
    assert shared.conversation is not None
    parent = shared.conversation.session.context.workspace
    return await shared.fork(request_of(tmp_path, second, engine, "child")), parent


async def test_a_fork_has_a_session_a_home_and_the_whole_workspace_and_links_lead_into_it(
    tmp_path: Path,
) -> None:
    fork, parent = await forked(tmp_path, ScriptedEngine())
    assert isinstance(fork, OpenTrial)
    own = fork.session.context.workspace
    assert own != parent
    assert fork.session.session not in (None, fork.done[0].session_id)
    assert fork.session.context.home.is_relative_to(tmp_path / "child")
    (parent / "a.txt").write_text("changed", encoding="utf-8")
    record = (await run_trial(fork.request, fork)).record
    assert record.session_id == fork.session.session
    assert [turn.session_verified for turn in record.turns] == [None, True]
    assert isinstance(fork.request.streams, KeptStreams)
    raw = sorted(fork.request.streams.contents)
    assert raw[::2] == ["turn-01.stderr.txt", "turn-02.stderr.txt"]
    answer = record.turns[1]
    assert answer.error is None
    assert answer.response == f"xxy/etc/hosts\n{own}/a.txt"
    assert answer.changes is not None
    assert not answer.changes.added + answer.changes.modified + answer.changes.deleted
    assert (own / "a.txt").stat().st_mode & 0o777 == 0o600


async def test_a_fork_that_went_wrong_is_an_error(tmp_path: Path) -> None:
    fork, _ = await forked(tmp_path, Defect())
    assert isinstance(fork, TurnError)
    assert (fork.kind, "LookupError" in fork.message) == ("internal", True)


async def test_the_time_of_the_turns_before_a_fork_counts_for_its_conversation(
    tmp_path: Path,
) -> None:
    first, second = jobs_of(tmp_path, f"timeout_seconds: 60\n{CASE.lstrip()}")
    engine = ScriptedEngine()
    shared = await run_shared_prefix(request_of(tmp_path, first, engine, "parent"), 1)
    shared.used_seconds = 61
    fork = await shared.fork(request_of(tmp_path, second, engine, "child"))
    assert isinstance(fork, OpenTrial)
    late = (await run_trial(fork.request, fork)).record.turns[1].error
    assert late is not None
    assert (late.kind, "60 s are used up" in late.message) == ("timeout", True)
