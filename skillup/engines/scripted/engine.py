"""The `scripted` engine: drives the small agent in :mod:`skillup.engines.scripted_agent`.

Each turn is a process of its own, which resumes the session file that the turn before left. The
script comes from the case; there is no model, no network and no key.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import anyio.to_thread
from pydantic import ValidationError

from skillup.engines.base import (
    Availability,
    CreatedSession,
    EngineTurn,
    Progress,
    SessionRef,
    TrialContext,
    TurnRequest,
)
from skillup.engines.cli_runner import (
    Invocation,
    ParsedTurn,
    ProcessTurn,
    Transcript,
    as_dict,
    as_text,
    is_there,
    read_event,
    run_turn,
)
from skillup.engines.environment import clean_variables, moved, temporary_directory
from skillup.engines.failures import Cli, Failure, lost_session, turn_error, written_session
from skillup.engines.login import secrets_of
from skillup.engines.pricing import cost_usd
from skillup.engines.scripted_agent import VERSION
from skillup.engines.scripted_agent import __file__ as _agent_package
from skillup.engines.session_files import (
    of_a_history,
    take_fingerprint,
    what_it_lost,
    what_was_added,
)
from skillup.schema.check_specs import ToolKind
from skillup.schema.profile import Profile
from skillup.schema.record import ErrorKind, HistoryItem, TurnError, Usage
from skillup.schema.scripted import Script

# The scripted agent's session files, as seen from outside.


def agent_home(trial_home: Path) -> Path:
    """The agent's own directory within a trial's home."""
    return trial_home / "scripted-agent"


def session_file(home: Path, session_id: str) -> Path:
    """Where the agent with this home keeps that session."""
    return home / "sessions" / f"{session_id}.jsonl"


def is_user_message(entry: dict[str, Any]) -> bool:
    """Whether this line of a session file begins a turn."""
    return entry.get("type") == "user"


# Session files of the scripted agent that no agent wrote: seeded with a history, or forked.

_TOOLS = {"shell": "shell", "write": "write_file", "read": "read_file", "skill": "skill"}
"""What the agent calls its own tool of a portable kind."""


def seeded_lines(history: Sequence[HistoryItem], trial: TrialContext) -> Iterator[str]:
    """The lines of a session that holds `history`."""
    header = {"type": "session", "session_id": trial.session_id, "agent_version": VERSION}
    yield _line({**header, "workspace": str(trial.workspace)})
    asked = False
    answer: str | None = None
    for item in history:
        if item.role == "user" and answer is not None:
            yield _seeded("answer", text=answer)
            answer = None
        if item.role == "user":
            asked = True
            yield _seeded("user", text=item.content)
        elif item.tool_result is not None:
            result = item.tool_result
            status = "error" if result.status == "error" else "success"
            yield _seeded("tool_result", id=result.call_id, status=status, output=result.content)
        else:
            if item.content:
                yield _seeded("message", text=item.content)
                # Without a question there is nothing that it could be the answer to.
                answer = item.content if asked else None
            for call in item.tool_calls:
                name = call.name or _TOOLS.get(call.kind, call.kind)
                yield _seeded("tool_call", id=call.id, name=name, input=call.arguments)
    if answer is not None:
        yield _seeded("answer", text=answer)


def forked_lines(
    file: Path, session_id: str, parent: TrialContext, child: TrialContext
) -> list[str]:
    """The lines of a copy of `file` for `child`, its workspace in place of `parent`'s.

    Raises OSError or ValueError where there is no session that could be copied.
    """
    lines: list[str] = []
    with file.open(encoding="utf-8") as stream:
        for line in stream:
            entry = moved(json.loads(line), str(parent.workspace), str(child.workspace))
            if not lines:
                if entry.get("agent_version") != VERSION:
                    raise ValueError("it was written by another version of the agent")
                entry |= {"session_id": child.session_id, "forked_from": session_id}
            lines.append(_line(entry))
    if not lines:
        raise ValueError("it is empty")
    return lines


def _seeded(kind: str, **fields: Any) -> str:
    return _line({"type": kind, "seeded": True, **fields})


def _line(entry: dict[str, Any]) -> str:
    return json.dumps(entry) + "\n"


# What the scripted agent prints; the format is documented in the agent's own package.

_TOOL_KINDS: dict[str, ToolKind] = {
    "shell": "shell",
    "write_file": "write",
    "read_file": "read",
    "skill": "skill",
}
_STATUSES: dict[str, Literal["success", "error", "unknown"]] = {
    "success": "success",
    "error": "error",
}
_ERROR_KINDS: dict[str, ErrorKind] = {
    "auth": "auth",
    "rate_limit": "rate_limit",
    "quota": "quota",
    "overloaded": "overloaded",
    "model_error": "model_error",
    "max_turns": "max_turns",
    "session_lost": "session_lost",
    "session_exists": "session_mismatch",
    "script": "model_error",
}


class ScriptedEvents:
    """An :class:`~skillup.engines.cli_runner.EventParser` for one turn."""

    def __init__(self, progress: Progress = lambda _: None) -> None:
        self.script_fault: str | None = None
        """What is wrong with the script, if that is why there is no answer."""
        self._turn = ParsedTurn()
        self._transcript = Transcript(progress)

    @property
    def closed(self) -> bool:
        """Whether its `result` has come."""
        return self._turn.finished

    def feed(self, line: bytes) -> None:
        """Take the next line, without its newline."""
        event = read_event(line)
        if event is None:
            return
        if isinstance(event, str) or not self._take(event):
            self._transcript.unknown_event(event)

    def result(self) -> ParsedTurn:
        """What the lines so far came to."""
        self._turn.items = self._transcript.items
        self._turn.notices = self._transcript.notices
        self._turn.unknown_events = self._transcript.unknown
        self._turn.unread_lines = self._transcript.unread
        return self._turn

    def _take(self, event: dict[str, Any]) -> bool:
        """False if the event is none that we know."""
        kind = event.get("type")
        if kind == "session_started":
            self._turn.session_id = as_text(event.get("session_id")) or None
            self._turn.version = as_text(event.get("agent_version")) or None
            self._turn.model = as_text(event.get("model")) or None
        elif kind == "message":
            self._transcript.message(as_text(event.get("text")))
        elif kind == "tool_call":
            name = as_text(event.get("name"))
            tool_kind = _TOOL_KINDS.get(name, "other")
            arguments = as_dict(event.get("input"))
            self._transcript.call(as_text(event.get("id")), name, tool_kind, arguments)
        elif kind == "tool_result":
            status = _STATUSES.get(as_text(event.get("status")), "unknown")
            self._transcript.result(as_text(event.get("id")), status, as_text(event.get("output")))
        elif kind == "usage":
            return self._take_usage(event)
        elif kind == "result":
            self._take_result(event)
        else:
            return False
        return True

    def _take_usage(self, event: dict[str, Any]) -> bool:
        counts = {name: value for name, value in event.items() if name != "type"}
        try:
            self._turn.usage = Usage.model_validate(counts)
        except ValidationError:
            return False
        return True

    def _take_result(self, event: dict[str, Any]) -> None:
        self._turn.finished = True
        self._turn.session_id = as_text(event.get("session_id")) or self._turn.session_id
        self._turn.response = as_text(event.get("answer"))
        if event.get("is_error"):
            error = as_dict(event.get("error"))
            kind = as_text(error.get("kind"))
            said = as_text(error.get("message")) or "it reported an error without a message"
            self.script_fault = said if kind == "script" else None
            self._turn.failure = Failure(_ERROR_KINDS.get(kind, "model_error"), said)


_CLI = Cli(
    name="scripted",
    install="correct `command` in the profile, or leave it out",
    login="it needs no login: the script asked for this error",
)

# Isolated and without site-packages: nothing of the user's can slow it down or break it.
_DEFAULT_COMMAND = (
    *(sys.executable, "-I", "-S", "-X", "utf8"),
    str(Path(_agent_package).with_name("__main__.py")),
)

# What ended the turn before its session could be asked of anything.
_BEFORE_THE_SESSION: tuple[ErrorKind, ...] = (
    *("engine_not_found", "engine_not_usable", "timeout", "output_limit"),
)


class ScriptedEngine:
    """An `Engine` that resumes, seeds and forks its sessions (:mod:`skillup.engines.base`)."""

    name = "scripted"

    async def start(self, turn: TurnRequest, trial: TrialContext) -> EngineTurn:
        """Hold the first turn of a new session."""
        return await self._hold(turn, trial, "--session-id", trial.session_id)

    async def resume(
        self, session: SessionRef, turn: TurnRequest, trial: TrialContext
    ) -> EngineTurn:
        """Hold the next turn of `session`; its earlier turns must still be known."""
        return await self._hold(turn, trial, "--resume", session.id)

    async def check(self, profile: Profile, environment: Mapping[str, str]) -> Availability:
        """It is always here, unless the profile names a command that is not."""
        command = _command(profile)
        if not is_there(command[0], environment, Path.cwd()):
            problem = turn_error(_CLI, "engine_not_found", f"there is no program `{command[0]}`")
            return Availability(False, command, problem=problem)
        version = None if profile.command else VERSION
        return Availability(True, command, version, login="none needed")

    def skill_directories(self) -> Sequence[str]:
        """Where, relative to the workspace, this engine looks for skills."""
        return (".agents/skills",)

    def seeding_problem(self, version: str | None) -> str | None:
        """Why sessions of the agent's `version` cannot be written; None: their format is known."""
        if version == VERSION:
            return None
        return (
            f"scripted: sessions of {version or 'an agent whose version is not known'} cannot be "
            f"written, only those of {VERSION}; leave `command` out of the profile"
        )

    async def seed(self, history: Sequence[HistoryItem], trial: TrialContext) -> CreatedSession:
        """A session of this trial's that holds `history`, in order."""
        placed = _place(seeded_lines(history, trial), trial)
        return replace(placed, fingerprint=of_a_history(placed.fingerprint))

    async def fork(
        self, session: SessionRef, parent: TrialContext, child: TrialContext
    ) -> CreatedSession:
        """A copy of `session`, which is `parent`'s, as a session of `child`'s."""
        file = session_file(agent_home(parent.home), session.id)
        try:
            lines = forked_lines(file, session.id, parent, child)
        except (OSError, ValueError) as trouble:
            what = f"session {session.id} cannot be copied: {trouble}"
            return CreatedSession(None, error=turn_error(_CLI, "session_lost", what))
        return _place(lines, child)

    async def _hold(
        self, turn: TurnRequest, trial: TrialContext, option: str, session_id: str
    ) -> EngineTurn:
        if trial.script is None:
            return EngineTurn(session=None, error=_no_script())
        home = agent_home(trial.home)
        file = session_file(home, session_id)
        added = None if turn.previous is None else what_was_added(file, turn.previous)
        if added is not None:
            error = written_session(_CLI, session_id, added)
            return EngineTurn(SessionRef(session_id), session_verified=False, error=error)
        arguments = _arguments(trial.script, turn, trial.profile, home)
        environment = _environment(trial, turn.sending)
        invocation = Invocation(
            argv=(*_command(trial.profile), *arguments, f"{option}={session_id}"),
            env=environment,
            stdin=turn.prompt.encode("utf-8", "replace"),
            secrets=secrets_of(trial, None),
        )
        events = ScriptedEvents(trial.progress)
        held = await run_turn(_CLI, invocation, events, turn, trial, lambda _: None)
        if held.error is not None and events.script_fault is not None:
            held = replace(held, error=_wrong_script(events.script_fault))
        return await anyio.to_thread.run_sync(_outcome, held, turn, trial, session_id, file)


def _place(lines: Iterable[str], trial: TrialContext) -> CreatedSession:
    file = session_file(agent_home(trial.home), trial.session_id)
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("x", encoding="ascii") as stream:
        stream.writelines(lines)
    fingerprint = take_fingerprint(file, trial.session_id, is_user_message)
    return CreatedSession(SessionRef(trial.session_id), fingerprint)


def _outcome(
    held: ProcessTurn, turn: TurnRequest, trial: TrialContext, session_id: str, file: Path
) -> EngineTurn:
    parsed = held.parsed
    loss = None if turn.previous is None else what_it_lost(file, turn.previous)
    fingerprint = take_fingerprint(file, session_id, is_user_message)
    error = held.error
    if error is None or error.kind not in _BEFORE_THE_SESSION:
        answered_in = parsed.session_id or session_id
        error = _session_error(session_id, answered_in, loss, parsed.response) or error
    if error is None and fingerprint is None:
        what = f"it answered, and left no file of session {session_id}"
        error = lost_session(_CLI, what, f"no such file: {file}", parsed.response)
    return EngineTurn(
        session=SessionRef(parsed.session_id) if parsed.session_id else None,
        response=parsed.response if error is None else "",
        items=parsed.items,
        usage=parsed.usage,
        cost_usd=cost_usd(trial.profile, parsed.model, parsed.usage),
        model=parsed.model,
        version=parsed.version,
        fingerprint=fingerprint,
        session_verified=None if turn.previous is None else loss is None,
        process=held.process,
        unknown_events=parsed.unknown_events,
        unread_lines=parsed.unread_lines,
        notices=(*parsed.notices, *held.notices),
        error=error,
    )


def _session_error(
    session_id: str, answered_in: str, loss: str | None, answer: str
) -> TurnError | None:
    """What is wrong with the session; that explains whatever the agent made of it."""
    if answered_in != session_id:
        what = f"asked for session {session_id}, it answered from session {answered_in}"
        return turn_error(_CLI, "session_mismatch", what)
    if loss is not None:
        what = f"session {session_id} no longer holds the earlier turns"
        return lost_session(_CLI, what, loss, answer)
    return None


def _wrong_script(said: str) -> TurnError:
    message = f"scripted: {said}; correct the case's `scripted:` section, or add a reply to it"
    return TurnError(kind="model_error", message=message)


def _no_script() -> TurnError:
    return TurnError(
        kind="engine_not_usable",
        message="the scripted engine needs a `scripted:` section in the case, which says how the "
        "agent answers; add one, or choose another engine with --engine",
    )


def _command(profile: Profile) -> tuple[str, ...]:
    return tuple(profile.command) if profile.command else _DEFAULT_COMMAND


def _arguments(script: Script, turn: TurnRequest, profile: Profile, home: Path) -> list[str]:
    """Also writes the files they name: texts that may be longer than an argument can be."""
    home.mkdir(parents=True, exist_ok=True)
    script_file = home / "script.json"
    script_file.write_text(script.model_dump_json(), "utf-8")
    arguments = [f"--home={home}", f"--script={script_file}", f"--permission={profile.permission}"]
    if turn.system is not None:
        system_file = home / "system.txt"
        system_file.write_bytes(turn.system.encode("utf-8", "replace"))
        arguments.append(f"--system-file={system_file}")
    if profile.model:
        arguments.append(f"--model={profile.model}")
    limit = turn.max_steps or profile.max_turns
    if limit:
        arguments.append(f"--max-turns={limit}")
    return [*arguments, *profile.args]


def _environment(trial: TrialContext, sending: int) -> dict[str, str]:
    lots = {
        "SKILLUP_SCRIPTED_SEED": str(trial.seed),
        # A message that is sent once more may fare better, as in another attempt.
        "SKILLUP_SCRIPTED_ATTEMPT": str(trial.attempt + sending - 1),
    }
    if trial.profile.isolation == "shared":
        return {**trial.environment, **trial.extra_env, **lots}
    own_home = trial.home / "home"
    own_home.mkdir(parents=True, exist_ok=True)
    homes = {"HOME": str(own_home), "TMPDIR": str(temporary_directory(trial))}
    return {**clean_variables(trial.environment), **homes, **trial.extra_env, **lots}
