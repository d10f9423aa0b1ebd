"""What `skillup doctor` looks at: CLIs, their logins, with `--probe` a resume; and sandboxes."""

from __future__ import annotations

import os
import sys
import tempfile
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Literal

import anyio

from skillup.adapters import ADAPTERS
from skillup.dataclass import frozen
from skillup.engines.base import Availability, HistorySeeder, NoStreams, SessionResumer, TurnRequest
from skillup.engines.registry import engine_of
from skillup.errors import SkillupError
from skillup.judges.session import context_in
from skillup.load.discover import workspace_root
from skillup.load.profiles import load_profile, profile_files
from skillup.process.tree import new_marker
from skillup.reports.terminal.layout import Part, make_console, print_line, print_table
from skillup.reports.text import one_line
from skillup.sandbox.opening import PROBES
from skillup.schema.profile import Profile, Reply, Script
from skillup.schema.record import TurnError

CODEWORD = "walrus"
_NO_LOGIN = "none needed"
_STYLE = {"ok": "green", "?": "yellow", "no": "red"}


@frozen
class DoctorFinding:
    """What was found out about one engine."""

    name: str
    adapter: str
    available: Availability
    probe: str | None = None  # None: not asked; `ok`; else what went wrong
    notes: tuple[str, ...] = ()  # What is good to know and keeps no engine from working

    @property
    def works(self) -> bool:
        """Nothing is known to be wrong."""
        return self.available.problem is None and self.probe in (None, "ok")

    @property
    def verdict(self) -> Literal["ok", "?", "no"]:
        """A CLI may have a login where nobody but itself finds it: only `--probe` shows then."""
        if not self.works:
            return "no"
        return "ok" if self.available.login or self.probe == "ok" else "?"

    def as_dict(self) -> dict[str, Any]:
        """For ``--json``."""
        problem = self.available.problem
        own = {"problem": problem and problem.model_dump(), "notes": self.notes}
        about = {"name": self.name, "adapter": self.adapter, **asdict(self.available)}
        return {**about, **own, "probe": self.probe}


def examine(names: Sequence[str] | None, *, probe: bool) -> list[DoctorFinding]:
    """Look at the named engines, or at all that are known here. Raises UsageError for others."""
    root = workspace_root(Path.cwd())
    profiles: list[Profile] = []
    broken: list[DoctorFinding] = []
    for name in names or dict.fromkeys([*profile_files(root), *ADAPTERS]):
        try:
            profile = load_profile(name, root, os.environ)
            words = profile.command or ()
            # In a folder that came from elsewhere a command that is more than a name on PATH may
            # be anything, so it is started only if the profile is asked for by name.
            if names or not (len(words) > 1 or any("/" in word for word in words)):
                profiles.append(profile)
                continue
            why = "its profile names a program of its own, not started"
        except SkillupError:
            if names:
                raise
            # Without names, a broken profile is a finding among others; `validate` has details.
            why = "its profile is not valid"
        problem = TurnError(kind="engine_not_usable", message=f"{why}: run skillup doctor {name}")
        nothing = Availability(found=False, command=(), problem=problem)
        broken.append(DoctorFinding(name, "?", nothing))

    async def look(profile: Profile) -> DoctorFinding:
        engine = engine_of(profile)
        available = await engine.check(profile, os.environ)
        probed = None
        if probe and available.problem is None:
            probed = await _probe(profile, os.environ)
        notes = available.notes
        if available.found and isinstance(engine, HistorySeeder):
            problem = engine.seeding_problem(available.version)
            notes = (*notes, f"no `input.history`: {problem}") if problem else notes
        return DoctorFinding(profile.name, profile.engine, available, probed, notes)

    found = [anyio.run(look, profile) for profile in profiles] + broken
    return found if names else found + [_sandbox(kind) for kind in PROBES]


def _sandbox(kind: str) -> DoctorFinding:
    probe = PROBES[kind]()
    problem = TurnError(kind="setup", message=probe.problem) if probe.problem else None
    notes = tuple(f"it leaves open: {what}" for what in probe.open)
    version = probe.version.removeprefix(f"{kind} ") or None
    available = Availability(problem is None, (kind,), version, _NO_LOGIN, problem, notes)
    return DoctorFinding(kind, "sandbox", available, notes=notes)


async def _probe(profile: Profile, environment: Mapping[str, str]) -> str:
    """Two turns: give it a word, resume, ask for the word."""
    engine = engine_of(profile)
    replies = [Reply(turn=1, say="Noted."), Reply(turn=2, say="You said: {{turns.1.user}}")]
    script = Script(replies=replies)
    with tempfile.TemporaryDirectory(prefix="skillup-probe-") as scratch:
        own = {"marker": new_marker(), "session_id": str(uuid.uuid4()), "script": script}
        trial = context_in(Path(scratch), profile, environment, streams=NoStreams(), **own)
        limit = min(profile.timeout_seconds, 120.0)
        word = TurnRequest(1, f"Remember the codeword: {CODEWORD}", timeout_seconds=limit)
        first = await engine.start(word, trial)
        if first.error is not None:
            return f"{first.error.kind}: {first.error.message}"
        if not isinstance(engine, SessionResumer) or first.session is None:
            return "it cannot resume a session"
        question = TurnRequest(
            2, "What is the codeword?", timeout_seconds=limit, previous=first.fingerprint
        )
        second = await engine.resume(first.session, question, trial)
        if second.error is not None:
            return f"{second.error.kind}: {second.error.message}"
        if CODEWORD not in second.response.casefold():
            return f"it resumed, but did not know the codeword: {one_line(second.response, 80)}"
    return "ok"


def print_findings(findings: Sequence[DoctorFinding]) -> None:
    """A line for each engine, and what to do about those that do not work."""
    rows: list[Sequence[Part]] = [
        [
            (found.verdict, _STYLE[found.verdict]),
            found.name,
            found.available.version or "–",
            found.available.login or "–",
            {None: "–", "ok": "ok"}.get(found.probe, "failed"),
            " ".join(found.available.command),
        ]
        for found in findings
    ]
    console = make_console(sys.stdout)
    heads = ("", "engine", "version", "login", "probe", "command")
    print_table(console, rows, heads, align="llllll")
    for finding in findings:
        problem = finding.available.problem
        lines = [(problem.message, "")] if problem is not None else []
        if finding.probe not in (None, "ok"):
            lines.append((f"probe: {finding.probe}", ""))
        for text, style in [*lines, *((note, "dim") for note in finding.notes)]:
            print_line(console, f"{finding.name}: {text}", style=style, whole=True)
