"""The `scripted` engine: drives the small agent in :mod:`skillup.engines.scripted_agent`.

Each turn is a process of its own, which resumes the session file that the turn before left. The
script comes from the case; there is no model, no network and no key.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import anyio.to_thread

from skillup.engines.base import (
    Availability,
    Placed,
    SessionRef,
    TrialContext,
    TurnOutcome,
    TurnRequest,
)
from skillup.engines.environment import clean_variables, temporary_directory
from skillup.engines.failures import Cli, lost_session, turn_error, written_session
from skillup.engines.login import secrets_of
from skillup.engines.prices import cost_usd
from skillup.engines.scripted_agent import VERSION
from skillup.engines.scripted_agent import __file__ as _agent_package
from skillup.engines.scripted_events import ScriptedEvents
from skillup.engines.scripted_placing import forked_lines, seeded_lines
from skillup.engines.scripted_session import agent_home, is_user_message, session_file
from skillup.engines.session_files import (
    of_a_history,
    take_fingerprint,
    what_it_lost,
    what_was_added,
)
from skillup.engines.turns import HeldTurn, Invocation, hold_turn, is_there
from skillup.schema.profile import Profile
from skillup.schema.record import ErrorKind, HistoryItem, TurnError
from skillup.schema.scripted import Script

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

    async def start(self, turn: TurnRequest, trial: TrialContext) -> TurnOutcome:
        """Hold the first turn of a new session."""
        return await self._hold(turn, trial, "--session-id", trial.session_id)

    async def resume(
        self, session: SessionRef, turn: TurnRequest, trial: TrialContext
    ) -> TurnOutcome:
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

    async def seed(self, history: Sequence[HistoryItem], trial: TrialContext) -> Placed:
        """A session of this trial's that holds `history`, in order."""
        placed = _place(seeded_lines(history, trial), trial)
        return replace(placed, fingerprint=of_a_history(placed.fingerprint))

    async def fork(self, session: SessionRef, parent: TrialContext, child: TrialContext) -> Placed:
        """A copy of `session`, which is `parent`'s, as a session of `child`'s."""
        file = session_file(agent_home(parent.home), session.id)
        try:
            lines = forked_lines(file, session.id, parent, child)
        except (OSError, ValueError) as trouble:
            what = f"session {session.id} cannot be copied: {trouble}"
            return Placed(None, error=turn_error(_CLI, "session_lost", what))
        return _place(lines, child)

    async def _hold(
        self, turn: TurnRequest, trial: TrialContext, option: str, session_id: str
    ) -> TurnOutcome:
        if trial.script is None:
            return TurnOutcome(session=None, error=_no_script())
        home = agent_home(trial.home)
        file = session_file(home, session_id)
        added = None if turn.previous is None else what_was_added(file, turn.previous)
        if added is not None:
            error = written_session(_CLI, session_id, added)
            return TurnOutcome(SessionRef(session_id), session_verified=False, error=error)
        arguments = _arguments(trial.script, turn, trial.profile, home)
        environment = _environment(trial, turn.sending)
        invocation = Invocation(
            argv=(*_command(trial.profile), *arguments, f"{option}={session_id}"),
            env=environment,
            stdin=turn.prompt.encode("utf-8", "replace"),
            secrets=secrets_of(trial, None),
        )
        events = ScriptedEvents(trial.progress)
        held = await hold_turn(_CLI, invocation, events, turn, trial, lambda _: None)
        if held.error is not None and events.script_fault is not None:
            held = replace(held, error=_wrong_script(events.script_fault))
        return await anyio.to_thread.run_sync(_outcome, held, turn, trial, session_id, file)


def _place(lines: Iterable[str], trial: TrialContext) -> Placed:
    file = session_file(agent_home(trial.home), trial.session_id)
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("x", encoding="ascii") as stream:
        stream.writelines(lines)
    fingerprint = take_fingerprint(file, trial.session_id, is_user_message)
    return Placed(SessionRef(trial.session_id), fingerprint)


def _outcome(
    held: HeldTurn, turn: TurnRequest, trial: TrialContext, session_id: str, file: Path
) -> TurnOutcome:
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
    return TurnOutcome(
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
