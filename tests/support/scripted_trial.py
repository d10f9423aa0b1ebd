"""Holds turns through the scripted engine, as a trial does."""

from __future__ import annotations

import os
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import psutil

from skillup.engines.base import (
    EngineTurn,
    SessionRef,
    TrialContext,
    TurnRequest,
)
from skillup.engines.scripted.engine import ScriptedEngine
from skillup.process import TRIAL_VARIABLE
from skillup.schema.profile import Profile
from skillup.schema.record import SessionFingerprint
from skillup.schema.scripted import Script


class ScriptedTrial:
    """One trial in a directory of its own: `base/workspace`, `base/home`, `base/raw`."""

    def __init__(
        self,
        base: Path,
        replies: list[dict[str, Any]] | None,
        *,
        environment: Mapping[str, str] | None = None,
        extra_env: Mapping[str, str] | None = None,
        attempt: int = 1,
        seed: int = 0,
        **profile: Any,
    ) -> None:
        self.engine = ScriptedEngine()
        self.progress: list[str] = []
        (base / "workspace").mkdir(parents=True)
        self.context = TrialContext(
            profile=Profile(engine="scripted", **profile),
            workspace=base / "workspace",
            home=base / "home",
            raw_dir=base / "raw",
            environment=os.environ if environment is None else environment,
            extra_env=extra_env or {},
            marker=f"test-{uuid.uuid4()}",
            session_id=str(uuid.uuid4()),
            version="1.0",
            script=None if replies is None else Script.model_validate(replies),
            attempt=attempt,
            seed=seed,
            progress=self.progress.append,
        )
        self._number = 0
        self._session: SessionRef | None = None
        self._previous: SessionFingerprint | None = None

    @property
    def workspace(self) -> Path:
        """Where the agent works."""
        return self.context.workspace

    @property
    def session_path(self) -> Path:
        """The session file of the trial."""
        return (
            self.context.home / "scripted-agent" / "sessions" / f"{self.context.session_id}.jsonl"
        )

    async def turn(self, prompt: str, **request: Any) -> EngineTurn:
        """The next turn: the first starts the session, later ones resume it."""
        self._number += 1
        turn = TurnRequest(number=self._number, prompt=prompt, previous=self._previous, **request)
        if self._session is None:
            outcome = await self.engine.start(turn, self.context)
        else:
            outcome = await self.engine.resume(self._session, turn, self.context)
        self._session, self._previous = outcome.session, outcome.fingerprint
        return outcome

    def processes(self) -> list[str]:
        """The living processes that this trial started."""
        assignment = (TRIAL_VARIABLE, self.context.marker)
        return [
            f"{process.pid} {process.name()}"
            for process in psutil.process_iter()
            if assignment in _environment(process).items()
        ]


def _environment(process: psutil.Process) -> dict[str, str]:
    try:
        return process.environ()
    except (psutil.Error, OSError):
        return {}
