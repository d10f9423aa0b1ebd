"""The `scripted` engine: drives the small agent in :mod:`skillup.engines.scripted_agent`.

The script comes from the case; there is no model, no network and no key.
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, get_args

from skillup.engines.base import Availability, TrialContext, TurnRequest
from skillup.engines.cli_runner import CliSpec
from skillup.engines.created_sessions import Row, UnwritableError, WritingCliEngine
from skillup.engines.environment import Login
from skillup.engines.events import EventParser, Failure, Status, as_dict, as_text, counts
from skillup.engines.scripted_agent import VERSION
from skillup.engines.scripted_agent import __file__ as _agent_package
from skillup.engines.session_files import VersionRange, json_line
from skillup.schema.checks import ToolKind
from skillup.schema.profile import Profile
from skillup.schema.record import ErrorKind, HistoryItem, TurnError, Usage

_TOOL_KINDS: dict[str, ToolKind] = {
    "shell": "shell",
    "write_file": "write",
    "read_file": "read",
    "skill": "skill",
}
_STATUSES: dict[str, Status] = {"success": "success", "error": "error"}
_ERROR_KINDS: Collection[ErrorKind] = get_args(ErrorKind)

# Isolated and without site-packages: nothing of the user's can slow it down or break it.
_DEFAULT_COMMAND = (
    *(sys.executable, "-I", "-S", "-X", "utf8"),
    str(Path(_agent_package).with_name("__main__.py")),
)


class ScriptedEvents(EventParser):
    """What the agent prints; the format is documented in its own package."""

    def take(self, event: dict[str, Any]) -> None:
        kind, call_id = event.get("type"), as_text(event.get("id"))
        if kind == "session_started":
            self.session_id = as_text(event.get("session_id")) or None
            self.version = as_text(event.get("agent_version")) or None
            self.model = as_text(event.get("model")) or None
        elif kind == "message":
            self.message(as_text(event.get("text")))
        elif kind == "tool_call":
            name = as_text(event.get("name"))
            arguments = as_dict(event.get("input"))
            self.call(call_id, name, _TOOL_KINDS.get(name, "other"), arguments)
        elif kind == "tool_result":
            status = _STATUSES.get(as_text(event.get("status")), "unknown")
            self.result(call_id, status, as_text(event.get("output")))
        elif kind == "usage":
            self.usage = Usage(**counts(event, {name: name for name in Usage.model_fields}))
        elif kind == "result":
            self.finished = self.closed = True
            self.session_id = as_text(event.get("session_id")) or self.session_id
            self.response = as_text(event.get("answer"))
            if event.get("is_error"):
                error = as_dict(event.get("error"))
                reason = as_text(error.get("kind"))
                text = as_text(error.get("message")) or "it reported an error without a message"
                known = (kind for kind in _ERROR_KINDS if kind == reason)
                self._failure = Failure(next(known, "model_error"), text)
        else:
            self.unknown(event)


class ScriptedEngine(WritingCliEngine):
    """Resumes, seeds and forks its sessions."""

    name = "scripted"
    spec = CliSpec(
        name="scripted",
        install="correct `command` in the profile, or leave it out",
        login="it needs no login",
        skill_directories=(".agents/skills",),
        writable=VersionRange(VERSION, VERSION),
        install_writable="leave `command` out of the profile",
    )

    def arguments(
        self, turn: TurnRequest, trial: TrialContext, session_id: str | None, login: Login
    ) -> list[str]:
        """Also writes the file that they name: with texts longer than an argument can be."""
        profile, home = trial.profile, self.engine_home(trial)
        home.mkdir(parents=True, exist_ok=True)
        options = {
            "permission": profile.permission,
            "model": profile.model,
            "system": turn.system,
            "max_turns": turn.max_steps or profile.max_turns,
            "seed": trial.seed,
            "attempt": trial.attempt + turn.sending - 1,  # a retried message may fare better
        }
        replies = trial.script.model_dump(mode="json") if trial.script else {}
        script = trial.home / "script.json"
        script.unlink(missing_ok=True)  # it may be a link by now
        data = {**replies, **{name: value for name, value in options.items() if value}}
        script.write_bytes(json_line(data))
        option = "--resume" if session_id else "--session-id"
        session = f"{option}={session_id or trial.session_id}"
        return [f"--home={home}", f"--script={script}", *profile.args, session]

    def command(self, profile: Profile) -> tuple[str, ...]:
        return tuple(profile.command or _DEFAULT_COMMAND)

    def parser(
        self, turn: TurnRequest, trial: TrialContext, session_id: str | None
    ) -> ScriptedEvents:
        return ScriptedEvents(trial.progress).asking(turn.prompt)

    def engine_home(self, trial: TrialContext, env: Mapping[str, str] | None = None) -> Path:
        return trial.home / "scripted-agent"

    def session_file(self, engine_home: Path, session_id: str) -> Path | None:
        file = engine_home / "sessions" / f"{session_id}.jsonl"
        return file if file.is_file() else None

    def is_user_message(self, row: dict[str, Any]) -> bool:
        return row.get("type") == "user"

    def refusal(self, trial: TrialContext, login: Login) -> TurnError | None:
        if trial.script is not None:
            return None
        what = "the scripted engine needs a `scripted:` section in the case, which says how the"
        fix = "agent answers; add one, or choose another engine with --engine"
        return TurnError(kind="engine_not_usable", message=f"{what} {fix}")

    def error(self, kind: ErrorKind, what: str, evidence: str = "") -> TurnError:
        """What its model does wrong is the script's."""
        if kind != "model_error":
            return super().error(kind, what, evidence)
        fix = "correct the case's `scripted:` section, or add a reply to it"
        return TurnError(kind=kind, message=f"scripted: {what}; {fix}", evidence=evidence)

    async def check(self, profile: Profile, environment: Mapping[str, str]) -> Availability:
        command = self.command(profile)
        if missing := self.missing(command[0], environment, Path.cwd()):
            return Availability(False, command, problem=missing)
        version = None if profile.command else VERSION
        return Availability(True, command, version, login="none needed")

    def new_file(self, trial: TrialContext, engine_home: Path) -> Path:
        return engine_home / "sessions" / f"{trial.session_id}.jsonl"

    def history_rows(
        self, history: Sequence[HistoryItem], trial: TrialContext
    ) -> tuple[list[Row], Sequence[str]]:
        """The agent knows what was said; of the tools that were used, nothing reads."""
        header = {"type": "session", "session_id": trial.session_id, "agent_version": VERSION}
        kinds = {"user": "user", "assistant": "answer"}
        said = [item for item in history if item.role in kinds and item.content]
        rows: list[Row] = [{**header, "workspace": str(trial.workspace)}]
        rows += [{"type": kinds[i.role], "seeded": True, "text": i.content} for i in said]
        return rows, ()

    def check_forkable(self, session_id: str, first: dict[str, Any]) -> None:
        if first.get("agent_version") != VERSION:
            raise UnwritableError("session_lost", f"its file is none of the agent {VERSION}")
