"""Turns through the scripted engine, as a trial has them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil

from skillup.engines.base import EngineTurn, TurnRequest
from skillup.engines.scripted.engine import ScriptedEngine
from skillup.process.tree import TRIAL_VARIABLE
from skillup.schema.profile import Profile, Script
from skillup.schema.record import SessionFingerprint
from tests.support.engine_turns import make_trial


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
        self.context = make_trial(
            base,
            Profile(engine="scripted", **profile),
            home=base / "home",
            environment=os.environ if environment is None else environment,
            extra_env=extra_env or {},
            version="1.0.0",
            script=None if replies is None else Script.model_validate(replies),
            attempt=attempt,
            seed=seed,
            progress=self.progress.append,
        )
        self.workspace = self.context.workspace
        self._number = 0
        self._session: str | None = None
        self._previous: SessionFingerprint | None = None

    @property
    def session_path(self) -> Path:
        sessions = self.context.home / "scripted-agent" / "sessions"
        return sessions / f"{self.context.session_id}.jsonl"

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
        found = []
        for process in psutil.process_iter():
            with suppress(psutil.Error, OSError):
                if process.environ().get(TRIAL_VARIABLE) == self.context.marker:
                    found.append(f"{process.pid} {process.name()}")
        return found
