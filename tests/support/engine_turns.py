"""Conversations through an engine's adapter, as a trial has them."""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import anyio

from skillup.engines.base import Engine, EngineTurn, SessionResumer, TrialContext, TurnRequest
from skillup.process.live import LiveSlot
from skillup.process.tree import new_marker
from skillup.schema.profile import Profile
from skillup.schema.record import ToolCall


def make_trial(base: Path, profile: Profile, **changes: Any) -> TrialContext:
    """A trial with directories of its own below `base`, and an environment with little in it."""
    workspace = base / "workspace"
    workspace.mkdir(parents=True, exist_ok=True)
    trial = TrialContext(
        profile=profile,
        workspace=workspace.resolve(),
        home=base / "trial-home",
        streams=KeptStreams(),
        environment={"PATH": os.environ["PATH"], "HOME": str(base / "user-home")},
        extra_env={},
        marker=new_marker(),
        session_id=str(uuid4()),
        live=LiveSlot() if profile.session == "live" else None,
    )
    return replace(trial, **changes)


class KeptStreams:
    """The raw streams of a trial, in memory: by name."""

    def __init__(self, contents: dict[str, bytes] | None = None, folder: str = "") -> None:
        self.contents = {} if contents is None else contents
        self._folder = folder

    def open(self, name: str) -> Kept:
        self.contents[self._folder + name] = b""
        return Kept(self.contents, self._folder + name)

    def set_aside(self, stem: str, as_what: str) -> None:
        for ending in ("stdout.jsonl", "stderr.txt"):
            number = 1
            while (new := f"{stem}.{as_what}-{number}.{ending}") in self.contents:
                number += 1
            self.contents[new] = self.contents.pop(f"{stem}.{ending}")

    def remove_from(self, turn: int) -> None:
        for name in [name for name in self.contents if name >= f"turn-{turn:02d}"]:
            del self.contents[name]

    def copy_from(self, other: KeptStreams) -> None:
        self.contents |= other.contents

    def below(self, folder: str) -> KeptStreams:
        return KeptStreams(self.contents, f"{self._folder}{folder}/")


@dataclass
class Kept:
    contents: dict[str, bytes]
    name: str

    def write(self, data: bytes) -> None:
        self.contents[self.name] += data

    def close(self) -> None:
        """Nothing is left to do."""


def raw_streams(trial: TrialContext) -> dict[str, str]:
    """What the processes of a trial of :func:`make_trial` have written, by the streams' names."""
    assert isinstance(trial.streams, KeptStreams)
    return {name: content.decode() for name, content in trial.streams.contents.items()}


@dataclass
class Conversation:
    """Turns of one trial, one after the other; each knows what the one before left."""

    engine: Engine
    trial: TrialContext
    outcomes: list[EngineTurn] = field(default_factory=list)

    def say(self, prompt: str, **request: Any) -> EngineTurn:
        previous = self.outcomes[-1].fingerprint if self.outcomes else None
        number = len(self.outcomes) + 1
        turn = TurnRequest(number, prompt, previous=previous, **{"timeout_seconds": 60, **request})
        session = self.outcomes[-1].session if self.outcomes else None
        outcome = self.resume(session, turn) if session else self.start(turn)
        self.outcomes.append(outcome)
        return outcome

    def start(self, turn: TurnRequest) -> EngineTurn:
        return anyio.run(self.engine.start, turn, self.trial)

    def resume(self, session: str, turn: TurnRequest) -> EngineTurn:
        assert isinstance(self.engine, SessionResumer)
        return anyio.run(self.engine.resume, session, turn, self.trial)


def calls(outcome: EngineTurn) -> list[ToolCall]:
    return [item.tool_call for item in outcome.items if item.tool_call is not None]


def error_kind(outcome: EngineTurn) -> str | None:
    """The kind of a turn's error; fails if there is an answer besides."""
    if outcome.error is None:
        return None
    assert outcome.response == "", "an answer must not stand beside an error"
    assert outcome.error.message
    return outcome.error.kind


def write_skill(folder: Path, name: str = "greeter", text: str = "Always bow first.") -> Path:
    """A skill in `folder/NAME`, described as "Says hello politely (NAME)"."""
    directory = folder / name
    directory.mkdir(parents=True)
    front = f"---\nname: {name}\ndescription: Says hello politely ({name})\n---\n"
    (directory / "SKILL.md").write_text(f"{front}{text}\n")
    return directory
