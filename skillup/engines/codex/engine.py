"""Codex: `codex exec` for each turn, the thread resumed by the id that its first turn announced."""

from __future__ import annotations

import json
from base64 import urlsafe_b64decode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio

from skillup.engines.base import (
    Availability,
    CreatedSession,
    EngineTurn,
    SessionRef,
    TrialContext,
    TurnRequest,
)
from skillup.engines.cli_runner import (
    Invocation,
    ProcessTurn,
    as_amount,
    as_dict,
    as_text,
    run_turn,
)
from skillup.engines.codex.arguments import arguments
from skillup.engines.codex.created_sessions import place_fork, place_history, seeding_problem
from skillup.engines.codex.events import CodexEvents, failure_of_stderr
from skillup.engines.codex.session import (
    RolloutPart,
    broken_sandbox,
    is_user_message,
    part_of_last_turn,
    read_part,
    rollouts,
    session_file,
    total_before,
    usage_by_totals,
    usage_of,
    with_missing_calls,
)
from skillup.engines.environment import EngineHome, trial_environment
from skillup.engines.failures import Cli, Failure, lost_session, turn_error, written_session
from skillup.engines.login import (
    Login,
    check_cli,
    describe_login,
    find_login,
    renewed_once,
    secrets_of,
)
from skillup.engines.pricing import cost_usd
from skillup.engines.session_files import (
    take_fingerprint,
    what_it_lacks,
    what_it_lost,
    what_was_added,
)
from skillup.process import ProcessOutcome
from skillup.schema.profile import Profile
from skillup.schema.record import HistoryItem, SessionFingerprint, TurnError


def _login_expiry(login: dict[str, Any]) -> float | None:
    """By the access token itself, a JWT."""
    tokens = as_dict(login.get("tokens"))
    claims = as_text(tokens.get("access_token")).split(".")[1:2]
    if not claims or not tokens.get("refresh_token"):
        return None
    try:
        padded = claims[0] + "=" * (-len(claims[0]) % 4)
        return as_amount(as_dict(json.loads(urlsafe_b64decode(padded))).get("exp"))
    except ValueError:
        return None


HOME = EngineHome("CODEX_HOME", ".codex", "auth.json", _login_expiry)
_CODEX_KEY = "CODEX_API_KEY"
_ACCESS_VARIABLE = "CODEX_ACCESS_TOKEN"
_OPENAI_KEY = "OPENAI_API_KEY"
CLI = Cli(
    name="codex",
    install="install it with `npm install -g @openai/codex`, or set `command` in the profile",
    login="log in with `codex login`, or set CODEX_API_KEY or the profile's `api_key_env`",
)
_NO_SANDBOX = (
    "none of the agent's commands ran; let codex make one (user namespaces, bubblewrap), or use "
    "`permission: full` in a container"
)


class Codex:
    """Engine, SessionResumer, HistorySeeder and SessionForker of :mod:`skillup.engines.base`."""

    name = "codex"

    async def start(self, turn: TurnRequest, trial: TrialContext) -> EngineTurn:
        """Hold the first turn of a new thread."""
        return await _hold(turn, trial, None)

    async def resume(
        self, session: SessionRef, turn: TurnRequest, trial: TrialContext
    ) -> EngineTurn:
        """Hold the next turn of the thread; its earlier turns must still be known."""
        return await _hold(turn, trial, session.id)

    def seeding_problem(self, version: str | None) -> str | None:
        """Why threads of this version of `codex` cannot be written; None if they can."""
        return seeding_problem(version)

    async def seed(self, history: Sequence[HistoryItem], trial: TrialContext) -> CreatedSession:
        """A thread of this trial's that holds `history`, in order."""
        login = _login(trial)
        if login.missing:
            return CreatedSession(None, error=turn_error(CLI, "auth", login.missing))
        home = HOME.of(_environment(trial, login))
        return await anyio.to_thread.run_sync(place_history, CLI, home, history, trial)

    async def fork(
        self, session: SessionRef, parent: TrialContext, child: TrialContext
    ) -> CreatedSession:
        """A copy of the parent's thread as the child's own."""
        homes = [HOME.of(_environment(trial, _login(trial))) for trial in (parent, child)]
        return await anyio.to_thread.run_sync(
            place_fork, CLI, session, (homes[0], parent), (homes[1], child)
        )

    async def check(self, profile: Profile, environment: Mapping[str, str]) -> Availability:
        """Say whether `codex` could be run, without asking a model anything."""
        variables = _key_variables(profile, environment)
        # Another server than OpenAI gets no tokens of the login file, and may need no key.
        home = None if profile.base_url else HOME
        login, problem = describe_login(profile, environment, variables, home)
        if profile.base_url and login is None and problem is None:
            login = "no key"
        return await check_cli(CLI, _command(profile), environment, login, problem)

    def login_file(self, environment: Mapping[str, str]) -> Path | None:
        """The user's login file; None if there is none."""
        return HOME.login_of(environment)

    def skill_directories(self) -> Sequence[str]:
        """Where, relative to the workspace, codex looks for skills."""
        return (".agents/skills",)


async def _hold(turn: TurnRequest, trial: TrialContext, thread_id: str | None) -> EngineTurn:
    login = _login(trial)
    if login.missing:
        return EngineTurn(session=None, error=turn_error(CLI, "auth", login.missing))
    env = _environment(trial, login)
    home = HOME.of(env)
    past = await anyio.to_thread.run_sync(_look, home, thread_id, turn.previous)
    if thread_id and (past.loss or past.added):
        error = (
            _lost(thread_id, past.loss)
            if past.loss
            else written_session(CLI, thread_id, past.added or "")
        )
        return EngineTurn(SessionRef(thread_id), session_verified=False, error=error)
    options = arguments(turn, trial, thread_id, key_variable=_key_variable(trial.profile, login))
    argv = (*_command(trial.profile), *options)
    parser = CodexEvents(trial.workspace, trial.progress)
    by_file = login.variable is None and not trial.profile.base_url
    async with renewed_once(trial, HOME, env, turn.timeout_seconds, by_file) as look:
        secrets = secrets_of(trial, HOME.login_of(env))
        invocation = Invocation(argv, env, turn.prompt.encode(), secrets)
        held = await run_turn(CLI, invocation, parser, turn, trial, _explain, lambda: look(secrets))
    # Long sessions take long to read: other trials' time limits must not wait for that.
    return await anyio.to_thread.run_sync(
        _outcome, held, parser, turn, trial, thread_id, home, past
    )


@dataclass(frozen=True, slots=True)
class _Past:
    """What the home and the thread had before the turn, of earlier turns or of a history."""

    files: set[Path]
    bytes: int = 0
    total: dict[str, Any] = field(default_factory=dict)
    """Tokens."""
    loss: str | None = None
    """What of the earlier turns is gone."""
    added: str | None = None
    """What somebody wrote to the thread since."""


def _look(home: Path, thread_id: str | None, previous: SessionFingerprint | None) -> _Past:
    files = rollouts(home)
    if thread_id is None:
        return _Past(files)
    path = session_file(home, thread_id)
    loss = None if previous is None else what_it_lost(path, previous)
    added = None if previous is None else what_was_added(path, previous)
    size = path.stat().st_size if path is not None else 0
    return _Past(files, size, total_before(path, size) if loss is None else {}, loss, added)


def _outcome(
    held: ProcessTurn,
    parser: CodexEvents,
    turn: TurnRequest,
    trial: TrialContext,
    asked_for: str | None,
    home: Path,
    past: _Past,
) -> EngineTurn:
    thread_id = held.parsed.session_id
    error = held.error
    if error is None:
        error = _mismatch(asked_for, thread_id, rollouts(home) - past.files)
    path = session_file(home, thread_id) if thread_id else None
    now = take_fingerprint(path, thread_id, is_user_message) if thread_id else None
    verified: bool | None = None
    loss: str | None = None
    if turn.previous is not None:
        loss = what_it_lost(path, turn.previous)
    if loss is not None:
        part = part_of_last_turn(path) if path else RolloutPart()
        usage = usage_by_totals(parser.thread_total, past.total, part)
    else:
        part = read_part(path, past.bytes) if path else RolloutPart()
        usage = usage_of(past.total, part)
    if turn.previous is not None:
        if loss is None and error is None:
            loss = what_it_lacks(now, turn.previous)
        verified = thread_id == asked_for and loss is None
        if error is None and loss is not None:
            error = _lost(str(asked_for), loss, held.parsed.response)
    items = with_missing_calls(
        held.parsed.items, parser.tool_ends, parser.open_commands, part, trial.skills
    )
    if error is None and (said := broken_sandbox(items)) is not None:
        error = turn_error(CLI, "setup", f"its sandbox does not work here: {said}; {_NO_SANDBOX}")
    return EngineTurn(
        session=SessionRef(thread_id) if thread_id else None,
        response=held.parsed.response if error is None else "",
        items=items,
        usage=usage,
        cost_usd=cost_usd(trial.profile, part.model, usage),
        model=part.model,
        version=part.version,
        fingerprint=now,
        session_verified=verified,
        process=held.process,
        unknown_events=held.parsed.unknown_events,
        unread_lines=held.parsed.unread_lines,
        notices=[*held.parsed.notices, *held.notices, *_not_applied(turn, trial)],
        error=error,
    )


def _mismatch(
    asked_for: str | None, thread_id: str | None, new_files: set[Path]
) -> TurnError | None:
    """Whether the thread is not the one that it should be.

    A new one must have left exactly one new session file, named after it; more files than that
    are those of its sub-agents, or of other runs that share the home.
    """
    if thread_id is None:
        return turn_error(CLI, "protocol", "it did not say which thread the answer is from")
    if asked_for is not None:
        if thread_id == asked_for:
            return None
        what = f"it began the new thread {thread_id} instead of resuming {asked_for}"
        return turn_error(CLI, "session_mismatch", what)
    own = [path for path in new_files if path.stem.endswith(f"-{thread_id}")]
    if len(own) == 1:
        return None
    what = f"the thread {thread_id} left {len(own)} new session files instead of one"
    return turn_error(CLI, "session_mismatch", what)


def _command(profile: Profile) -> tuple[str, ...]:
    return tuple(profile.command or ("codex",))


def _environment(trial: TrialContext, login: Login) -> dict[str, str]:
    """Of the agent's process; with it the trial's home is there."""
    key_variable = _key_variable(trial.profile, login)
    credentials = {key_variable: login.value} if key_variable and login.value else {}
    return trial_environment(trial, HOME, credentials)


def _login(trial: TrialContext) -> Login:
    return find_login(trial, _key_variables(trial.profile, trial.environment))


def _key_variables(profile: Profile, environment: Mapping[str, str]) -> tuple[str, ...]:
    """The variables that may hold the key, best first."""
    if profile.base_url:
        return (_CODEX_KEY, _OPENAI_KEY)
    own = (_CODEX_KEY, _ACCESS_VARIABLE)
    # Codex itself does not read OPENAI_API_KEY: it serves where there is no other way to log in.
    return own if HOME.login_of(environment) else (*own, _OPENAI_KEY)


def _key_variable(profile: Profile, login: Login) -> str | None:
    """The variable in which codex gets the key: a provider of our own takes any name."""
    if login.variable == _ACCESS_VARIABLE or profile.base_url:
        return login.variable
    return _CODEX_KEY if login.variable else None


def _explain(outcome: ProcessOutcome) -> Failure | None:
    return failure_of_stderr(outcome.stderr_tail)


def _lost(thread_id: str, loss: str, answer: str = "") -> TurnError:
    what = f"the thread {thread_id} no longer holds its earlier turns"
    return lost_session(CLI, what, loss, answer)


def _not_applied(turn: TurnRequest, trial: TrialContext) -> list[str]:
    """What was asked for and codex has no way to do."""
    notes = []
    if turn.max_steps or trial.profile.max_turns:
        notes.append("codex has no limit on an agent's steps: `max_turns` was not applied")
    return notes
