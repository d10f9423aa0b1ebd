"""One message to the agent: what watchers see of it, and how it is sent again after a refusal."""

from __future__ import annotations

import hashlib
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest

from skillup.engines.base import EngineTurn, TrialContext, TurnRequest
from skillup.engines.scripted.engine import ScriptedEngine
from skillup.ratelimit import Throttle
from skillup.schema.profile import Profile
from skillup.schema.record import SessionFingerprint, TurnError
from skillup.trial.request import Interruption, TrialResult
from skillup.trial.run import run_trial
from skillup.trial.session import put_back, session_files, workspace_signature
from tests.support.engine_turns import KeptStreams
from tests.support.plans import jobs_of, request_of

SESSION = "home/.claude/projects/x/s-1.jsonl"


def fingerprint(text: str) -> SessionFingerprint:
    sha = hashlib.sha256(text.encode()).hexdigest()
    return SessionFingerprint(
        session_id="s-1", messages=1, prefix_sha256=sha, prefix_bytes=len(text)
    )


@pytest.mark.parametrize(
    ("now", "is_back"),
    [
        ("one\n", True),
        ("one\ntwo\n", True),
        ("one\ntwo\ncut", True),
        ("ONE\ntwo\n", False),
        ("on", False),
        (None, False),
    ],
)
def test_a_session_is_cut_back_to_exactly_what_it_held(
    tmp_path: Path, now: str | None, is_back: bool
) -> None:
    file, other = tmp_path / SESSION, tmp_path / "home/.codex/sessions/new.jsonl"
    (workspace := tmp_path / "workspace").mkdir()
    file.parent.mkdir(parents=True)
    file.write_text("one\n")
    before = session_files(tmp_path)
    assert before == {SESSION: 4}
    other.parent.mkdir(parents=True)
    other.write_text("{}\n")
    file.unlink() if now is None else file.write_text(now)
    signature = workspace_signature(workspace)
    problem = put_back(tmp_path, workspace, before, signature, fingerprint("one\n"))
    assert (problem is None) is is_back
    assert not other.exists()
    if is_back:
        assert file.read_text() == "one\n"


def test_a_workspace_that_was_touched_has_another_signature(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / "a").write_text("a")
    (tmp_path / ".git/index").write_text("i")
    first = workspace_signature(tmp_path)
    assert first is not None
    os.utime(tmp_path / ".git/index", ns=(1, 1))
    (tmp_path / ".git/index.lock").touch()
    (tmp_path / ".git/index.lock").unlink()
    assert workspace_signature(tmp_path) == first
    for change in (
        lambda: (tmp_path / "a").write_text("b"),
        lambda: (tmp_path / "a").chmod(0o700),
        lambda: (tmp_path / "new").mkdir(),
        lambda: (tmp_path / ".git/HEAD").write_text("x"),
    ):
        before = workspace_signature(tmp_path)
        change()
        assert workspace_signature(tmp_path) != before


class Patient(Throttle):
    """Says that each pause took 100 s; gives up after `tries` refusals."""

    def __init__(self, tries: int = 9, ends_at: int = 99) -> None:
        self.reports: list[str] = []
        self._tries, self._ends_at, self._requests = tries, ends_at, 0

    @property
    def closed(self) -> bool:
        return self._requests >= self._ends_at

    async def ready(self) -> float | None:
        self._requests += 1
        return None if self.closed else 0.0 if self._requests == 1 else 100.0

    def refused(self, error: TurnError) -> str | None:
        self.reports.append(error.kind)
        return None if self.reports.count(error.kind) < self._tries else "enough"

    def accepted(self) -> None:
        self.reports.append("accepted")


class Paid(ScriptedEngine):
    """Every message costs the same."""

    async def resume(self, session: str, turn: TurnRequest, trial: TrialContext) -> EngineTurn:
        return replace(await super().resume(session, turn, trial), cost_usd=0.25)


CASE = """
timeout_seconds: 50
input: {turns: [one, two]}
assertions: [{contains: one}]
scripted:
  - {turn: 1, say: hello}
  - turn: 2
    say: "{{turns.1.user}}"
    steps: STEPS
    misbehave: {error: rate_limit, times: TIMES}
"""
THINKS = "[{remember: {x: '1'}}, {say: thinking}]"


def sent(
    root: Path,
    throttle: Patient,
    times: int,
    steps: str = THINKS,
    streams: KeptStreams | None = None,
    **profile: Any,
) -> TrialResult:
    """Of a trial whose second message is refused so often."""
    (job,) = jobs_of(root, CASE.replace("STEPS", steps).replace("TIMES", str(times)))
    job = replace(job, profile=Profile(name="p", engine="scripted", **profile))
    request = replace(request_of(root, job, Paid(), "trial"), throttle=throttle)
    return anyio.run(run_trial, replace(request, streams=streams or request.streams))


def test_it_is_sent_again_in_the_session_as_it_was(tmp_path: Path) -> None:
    throttle = Patient()
    streams = KeptStreams()
    outcome = sent(tmp_path, throttle, 2, streams=streams)
    second = outcome.record.turns[1]
    # 300 s of waiting are no part of the 50 s that the conversation may take.
    assert (second.status, second.response, second.session_verified) == ("completed", "one", True)
    assert second.cost_usd == 3 * 0.25
    assert outcome.interruption is None
    assert throttle.reports == ["accepted", "rate_limit", "rate_limit", "accepted"]
    (session,) = (tmp_path / "trial/scratch/home").rglob("*.jsonl")
    assert session.read_text().count('"text": "two"') == 1
    assert second.notes == [
        "the provider refused the message 2 times (rate_limit); it was sent again after 300 s"
    ]
    raw = sorted(name for name in streams.contents if name.startswith("turn-02"))
    assert [name for name in raw if name.endswith(".jsonl")] == [
        "turn-02.refused-1.stdout.jsonl",
        "turn-02.refused-2.stdout.jsonl",
        "turn-02.stdout.jsonl",
    ]


@pytest.mark.parametrize(
    ("steps", "isolation", "why"),
    [
        ("[{write: {path: x.txt, content: x}}]", "clean", "the workspace was changed meanwhile"),
        (THINKS, "shared", "with `isolation: shared` the agent's session cannot be put back"),
    ],
)
def test_where_the_state_cannot_be_put_back_a_new_attempt_is_asked_for(
    tmp_path: Path, steps: str, isolation: str, why: str
) -> None:
    outcome = sent(tmp_path, Patient(), 1, steps, isolation=isolation)
    error = outcome.record.turns[1].error
    assert error is not None
    assert error.kind == "rate_limit"
    assert outcome.interruption == Interruption("restart", why)


def test_a_refusal_that_stays_is_the_turns_error(tmp_path: Path) -> None:
    outcome = sent(tmp_path, Patient(tries=3), 9)
    second = outcome.record.turns[1]
    assert (second.error and second.error.kind, outcome.interruption) == ("rate_limit", None)
    assert second.notes[0].startswith("the provider refused the message 2 times")


@pytest.mark.parametrize("ends_at", [2, 3])
def test_if_the_run_ends_meanwhile_the_trial_has_no_result(tmp_path: Path, ends_at: int) -> None:
    outcome = sent(tmp_path, Patient(ends_at=ends_at), 1)
    assert outcome.interruption == Interruption("run_ended")
    assert (tmp_path / "trial/raw/turn-02.stdout.jsonl").exists() is False
