"""What a unit asks the client, and gets from it; here both are in one process."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from skillup.executors.cluster.answering import Answering
from skillup.executors.cluster.asking import ClientRequests, RemotePacing
from skillup.executors.ratelimit import Paces
from skillup.executors.run import Run
from skillup.schema.profile import Profile
from skillup.schema.record import TurnError
from skillup.store import RunDirectory
from tests.support.held_plans import Quiet, options_at
from tests.support.virtual_time import VirtualTime

pytestmark = pytest.mark.anyio
PROFILE = Profile(name="p", engine="scripted")
REFUSED = TurnError(kind="rate_limit", message="no", retry_after_seconds=30)


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@asynccontextmanager
async def client(
    root: Path, paces: Paces, heard: list[dict[str, Any]]
) -> AsyncIterator[ClientRequests]:
    """A unit's questions, answered by a run with `paces`; `heard` fills with them."""
    lines: SimpleQueue[bytes | None] = SimpleQueue()

    async def bring(line: str) -> None:
        lines.put(line.encode())

    with RunDirectory.create(root / "run", {}) as directory:
        run = Run(directory, options_at(root / "run", paces=paces), Quiet(), {})
        async with anyio.create_task_group() as group:
            answering = Answering(run, {}, group, bring, anyio.lowlevel.checkpoint)

            def say(message: dict[str, Any]) -> None:
                heard.append(message)
                answering.asked(message)

            asking = ClientRequests(say, iter(lines.get, None))
            async with asking.listening():
                yield asking
                lines.put(None)
            group.cancel_scope.cancel()


async def test_a_question_that_is_withdrawn_keeps_nobody_back(tmp_path: Path) -> None:
    time, heard = VirtualTime(), list[dict[str, Any]]()
    async with client(tmp_path, Paces(600, **time.both), heard) as asking:
        pacing = RemotePacing(asking, "r", 600)
        passage = pacing.of_agent(PROFILE)
        assert await passage.ready()
        assert await passage.refused(REFUSED) is None
        began = time.now
        async with anyio.create_task_group() as group:
            group.start_soon(pacing.of_agent(PROFILE).ready)
            while len(heard) < 3:
                await anyio.lowlevel.checkpoint()
            group.cancel_scope.cancel()
        async with time.passing():
            assert await passage.ready()
        # The next in the row would have to wait for the one before it.
        assert time.now - began == 30


async def test_the_end_of_waiting_is_told_in_words(tmp_path: Path) -> None:
    async with client(tmp_path, Paces(10), []) as asking:
        pacing = RemotePacing(asking, "r", 10)
        agent, model = pacing.of_agent(PROFILE), pacing.of_model("http://x", "key")
        for passage, why in (
            (agent, "the run ends"),
            (model, "the provider wants 30 s of waiting"),
        ):
            assert await passage.ready()
            assert why in str(await passage.refused(REFUSED))
        assert not await agent.ready()


async def test_of_a_key_nothing_is_told_that_another_run_would_tell_again(tmp_path: Path) -> None:
    heard: list[dict[str, Any]] = []
    async with client(tmp_path, Paces(10), heard) as asking:
        for run_id, key in (("r", "sesame"), ("r", "other"), ("s", "sesame"), ("r", "sesame")):
            assert await RemotePacing(asking, run_id, 10).of_model("http://x", key).ready()
    accounts = [message["account"] for message in heard]
    assert accounts[0] == accounts[3]
    assert len(set(accounts)) == 3
    assert "sesame" not in str(heard)
