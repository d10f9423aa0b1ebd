"""A message that is refused is sent again, in the session and the workspace as they were."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from skillup.engines.base import TurnRequest
from skillup.ratelimit import Throttle
from skillup.schema.record import TurnError, TurnRecord
from skillup.trial.message import LiveSession
from skillup.trial.message_retry import Sender
from skillup.trial.request import Deadline
from skillup.trial.session import StateBackup
from skillup.workspace import BlobStore, take_snapshot
from tests.support.scripted_trial import ScriptedTrial

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


class Patient(Throttle):
    """Says that each pause took 100 s; gives up after `tries` refusals."""

    def __init__(self, tries: int = 9, *, leaves_at: int = 99) -> None:
        self.left = False
        self.anew: str | None = None
        self.said: list[str] = []
        self._tries = tries
        self._leaves_at = leaves_at
        self._asked = 0

    async def ready(self) -> float | None:
        self._asked += 1
        self.left = self._asked >= self._leaves_at
        return None if self.left else 0.0 if self._asked == 1 else 100.0

    def refused(self, error: TurnError) -> str | None:
        self.said.append(error.kind)
        return None if self.said.count(error.kind) < self._tries else "enough"

    def accepted(self) -> None:
        self.said.append("accepted")


class Held:
    """A conversation with the scripted agent."""

    def __init__(
        self, base: Path, replies: Sequence[dict[str, Any]], patience: Patient, **profile: Any
    ) -> None:
        self.trial = ScriptedTrial(base, list(replies), **profile)
        self.trial.context.home.mkdir()
        blobs = BlobStore(base / "blobs")
        snapshot = take_snapshot(self.trial.workspace, blobs)
        self.live = LiveSession(self.trial.engine, self.trial.context, blobs, snapshot)
        self.costs: list[float] = []
        """Of the next messages; the scripted agent tells none."""
        self.deadline = Deadline.after(50)
        self.keeper = StateBackup(self.live)
        self.sender = Sender(patience, self.live, self.deadline, self.keeper)

    async def say(self, text: str) -> TurnRecord:
        stem = f"turn-{self.live.messages + 1:02d}"

        async def once(sending: int) -> TurnRecord:
            live = self.live
            sent = await live.send(
                TurnRequest(
                    live.messages + 1,
                    text,
                    stem=stem,
                    previous=live.fingerprint,
                    sending=sending,
                )
            )
            cost = self.costs.pop(0) if self.costs else None
            return sent.model_copy(update={"cost_usd": cost})

        return await self.sender.send(stem, once)


def refusing(times: int, steps: Sequence[dict[str, Any]] = (), **more: Any) -> list[dict[str, Any]]:
    fault = {"error": "rate_limit", "times": times}
    return [
        {"turn": 1, "say": "hello"},
        {"turn": 2, "say": "{{turns.1.user}}", "steps": list(steps), "misbehave": fault, **more},
    ]


async def test_it_is_sent_again_in_the_session_as_it_was(tmp_path: Path) -> None:
    patience = Patient()
    steps: list[dict[str, Any]] = [{"remember": {"x": "1"}}, {"say": "thinking"}]
    held = Held(tmp_path, refusing(2, steps), patience)
    await held.say("one")
    before = held.trial.session_path.read_bytes()
    second = await held.say("two")
    assert (second.status, second.response, second.session_verified) == ("completed", "one", True)
    assert patience.said == ["accepted", "rate_limit", "rate_limit", "accepted"]
    session = held.trial.session_path.read_text()
    assert session.startswith(before.decode())
    assert session.count('"text": "two"') == 1
    assert second.notes == [
        "the provider refused the message 2 times (rate_limit); it was sent again after 300 s"
    ]
    raw = sorted(path.name for path in (tmp_path / "raw").glob("turn-02*.jsonl"))
    assert raw == [
        "turn-02.refused-1.stdout.jsonl",
        "turn-02.refused-2.stdout.jsonl",
        "turn-02.stdout.jsonl",
    ]


async def test_neither_waiting_nor_what_was_refused_takes_of_the_time(tmp_path: Path) -> None:
    held = Held(tmp_path, refusing(2), Patient())
    await held.say("one")
    began = time.monotonic()
    await held.say("two")
    took = time.monotonic() - began
    assert 300 < held.deadline.postponed <= 300 + took
    assert held.deadline.limit(1000) > 300


async def test_where_the_agent_touched_the_workspace_it_is_not_sent_again(tmp_path: Path) -> None:
    patience = Patient()
    steps = [{"write": {"path": "x.txt", "content": "x"}}]
    held = Held(tmp_path, refusing(1, steps), patience)
    await held.say("one")
    second = await held.say("two")
    assert second.error is not None
    assert second.error.kind == "rate_limit"
    assert patience.anew == "the agent had touched the workspace"


async def test_a_home_that_is_not_the_trials_own_cannot_be_put_back(tmp_path: Path) -> None:
    patience = Patient()
    held = Held(tmp_path, refusing(1), patience, isolation="shared")
    await held.say("one")
    assert (await held.say("two")).status == "error"
    assert patience.anew == "with `isolation: shared` the agent's session cannot be put back"


async def test_what_refused_messages_took_is_in_the_turns_usage(tmp_path: Path) -> None:
    patience = Patient()
    held = Held(tmp_path, refusing(1), patience)
    await held.say("one")
    held.costs = [0.25, 0.5]
    assert (await held.say("two")).cost_usd == 0.75


async def test_if_the_run_ends_meanwhile_the_message_is_not_sent(tmp_path: Path) -> None:
    patience = Patient(leaves_at=2)
    held = Held(tmp_path, refusing(1), patience)
    await held.say("one")
    second = await held.say("two")
    assert (second.status, patience.left) == ("error", True)
    assert not (tmp_path / "raw" / "turn-02.stdout.jsonl").exists()


async def test_a_refusal_that_stays_is_the_turns_error(tmp_path: Path) -> None:
    patience = Patient(tries=3)
    held = Held(tmp_path, refusing(9), patience)
    await held.say("one")
    second = await held.say("two")
    assert second.error is not None
    assert second.error.kind == "rate_limit"
    assert second.notes[0].startswith("the provider refused the message 2 times")
    assert patience.anew is None
