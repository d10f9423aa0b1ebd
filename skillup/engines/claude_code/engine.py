"""Claude Code: `claude -p` for each turn, the session resumed by an id that we choose."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import anyio.to_thread

from skillup.engines.base import (
    Availability,
    CreatedSession,
    EngineTurn,
    SessionRef,
    TrialContext,
    TurnRequest,
)
from skillup.engines.claude_code.arguments import arguments, input_bytes, isolation_notices
from skillup.engines.claude_code.events import ClaudeEvents, kind_of_text
from skillup.engines.claude_code.session import (
    SessionPlace,
    fingerprint,
    fork_session,
    history_session,
    now,
    session_file,
    write_session,
)
from skillup.engines.cli_runner import Invocation, ProcessTurn, as_amount, as_dict, run_turn
from skillup.engines.environment import EngineHome, lookup, trial_environment
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
    VersionRange,
    format_problem,
    what_it_lacks,
    what_it_lost,
    what_was_added,
    without_file,
)
from skillup.process import ProcessOutcome
from skillup.schema.profile import Profile
from skillup.schema.record import (
    HistoryItem,
    SessionFingerprint,
    ToolCall,
    ToolResult,
    TranscriptItem,
    TurnError,
)


def _login_expiry(login: dict[str, Any]) -> float | None:
    oauth = as_dict(login.get("claudeAiOauth"))
    expires = as_amount(oauth.get("expiresAt"))
    return expires / 1000 if expires is not None and oauth.get("refreshToken") else None


HOME = EngineHome("CLAUDE_CONFIG_DIR", ".claude", ".credentials.json", _login_expiry)
KEY_VARIABLES = ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN")
CLI = Cli(
    name="claude",
    install="install it with `npm install -g @anthropic-ai/claude-code`, "
    "or set `command` in the profile",
    login="log in with `claude`, or set ANTHROPIC_API_KEY or the profile's `api_key_env`",
)
# Of these, sessions that skillup wrote were resumed at both ends and in between.
KNOWN_SESSIONS = (VersionRange("2.1.100", "2.1.330"),)
_INSTALL_KNOWN = f"npm install -g @anthropic-ai/claude-code@{KNOWN_SESSIONS[-1].last}"

# Where the model is; belongs to the key, so both pass on together.
_ADDRESS_VARIABLES = ("ANTHROPIC_BASE_URL", "ANTHROPIC_CUSTOM_HEADERS")


class ClaudeCode:
    """Engine, SessionResumer, HistorySeeder, SessionForker of :mod:`skillup.engines.base`."""

    name = "claude_code"

    async def start(self, turn: TurnRequest, trial: TrialContext) -> EngineTurn:
        """Hold the first turn of a new session."""
        return await _hold(turn, trial, trial.session_id, resumed=False)

    async def resume(
        self, session: SessionRef, turn: TurnRequest, trial: TrialContext
    ) -> EngineTurn:
        """Hold the next turn of `session`; its earlier turns must still be known."""
        return await _hold(turn, trial, session.id, resumed=True)

    def seeding_problem(self, version: str | None) -> str | None:
        """Why sessions of claude's `version` cannot be written; None: their format is known."""
        return format_problem(CLI.name, version, KNOWN_SESSIONS, _INSTALL_KNOWN)

    async def seed(self, history: Sequence[HistoryItem], trial: TrialContext) -> CreatedSession:
        """A session of this trial that holds `history`. Raises OSError if it cannot be written."""
        problem = self.seeding_problem(trial.version)
        if problem is not None or trial.version is None:
            return CreatedSession(None, error=TurnError(kind="unsupported", message=problem or ""))
        login = find_login(trial, KEY_VARIABLES)
        if login.missing:
            return CreatedSession(None, error=turn_error(CLI, "auth", login.missing))
        session = history_session(history, trial.session_id, trial.workspace, trial.version, now())
        if not session.rows:
            error = TurnError(kind="setup", message="the history holds no message to begin with")
            return CreatedSession(None, error=error)
        home = _engine_home(trial)
        await anyio.to_thread.run_sync(write_session, session, home)
        return _placed(home, trial, session.notices)

    async def fork(
        self, session: SessionRef, parent: TrialContext, child: TrialContext
    ) -> CreatedSession:
        """A copy of `session` as a session of `child`'s. Raises OSError if it cannot be written."""
        homes = _engine_home(parent), _engine_home(child)
        source = session_file(homes[0], session.id)
        if source is None:
            return CreatedSession(None, error=_lost(session.id, f"it has no file in {homes[0]}"))
        places = (
            SessionPlace(homes[0], parent.home, parent.workspace, session.id),
            SessionPlace(homes[1], child.home, child.workspace, child.session_id),
        )
        await anyio.to_thread.run_sync(fork_session, source, *places)
        return _placed(homes[1], child)

    async def check(self, profile: Profile, environment: Mapping[str, str]) -> Availability:
        """Say whether `claude` could be run, without asking a model anything."""
        login, problem = describe_login(profile, environment, KEY_VARIABLES, HOME)
        return await check_cli(CLI, _command(profile), environment, login, problem)

    def login_file(self, environment: Mapping[str, str]) -> Path | None:
        """The user's login file; None if there is none."""
        return HOME.login_of(environment)

    def is_slash_command(self, prompt: str) -> bool:
        """Whatever begins with a slash and a name; what it does not know is then an error."""
        return prompt.startswith("/") and bool(prompt[1:2].strip())

    def skill_directories(self) -> Sequence[str]:
        """Where, relative to the workspace, claude looks for skills."""
        return (".claude/skills",)


async def _hold(
    turn: TurnRequest, trial: TrialContext, session_id: str, *, resumed: bool
) -> EngineTurn:
    login = find_login(trial, KEY_VARIABLES)
    if login.missing:
        return EngineTurn(session=None, error=turn_error(CLI, "auth", login.missing))
    env = _environment(trial, login)
    home = HOME.of(env)
    if turn.previous is not None:
        error = await anyio.to_thread.run_sync(_changed, home, session_id, turn.previous)
        if error is not None:
            return EngineTurn(SessionRef(session_id), session_verified=False, error=error)
    argv = (*_command(trial.profile), *arguments(turn, trial, session_id, resumed=resumed))
    events = ClaudeEvents(trial.progress)
    by_file = login.variable is None
    async with renewed_once(trial, HOME, env, turn.timeout_seconds, by_file) as look:
        secrets = secrets_of(trial, HOME.login_of(env))
        invocation = Invocation(argv, env, input_bytes(turn), secrets)
        held = await run_turn(CLI, invocation, events, turn, trial, _explain, lambda: look(secrets))
    return await anyio.to_thread.run_sync(_outcome, held, turn, trial, session_id, home)


def _changed(home: Path, session_id: str, previous: SessionFingerprint) -> TurnError | None:
    """The error of a session that is not as the turn before left it."""
    path = session_file(home, session_id)
    loss, added = what_it_lost(path, previous), what_was_added(path, previous)
    if loss is not None:
        return _lost(session_id, loss)
    return written_session(CLI, session_id, added) if added is not None else None


def _outcome(
    held: ProcessTurn, turn: TurnRequest, trial: TrialContext, session_id: str, home: Path
) -> EngineTurn:
    parsed = held.parsed
    error = held.error
    now = fingerprint(home, session_id)
    verified: bool | None = None
    loss: str | None = None
    if turn.previous is not None:
        loss = what_it_lost(session_file(home, session_id), turn.previous)
        if loss is None and error is None:
            loss = what_it_lacks(now, turn.previous)
        verified = loss is None
    if error is None and parsed.session_id != session_id:
        what = f"the answer is from session {parsed.session_id}, not from {session_id}"
        error = turn_error(CLI, "session_mismatch", what)
    elif error is None and loss is not None:
        error = _lost(session_id, loss, parsed.response)
    if error is None and now is None:
        now = without_file(session_id)  # so that a next turn is not believed to know this one
    return EngineTurn(
        session=SessionRef(session_id) if parsed.session_id == session_id else None,
        response=parsed.response if error is None else "",
        items=[*_skill_by_command(turn, trial, error), *parsed.items],
        usage=parsed.usage,
        cost_usd=_cost(held, trial.profile),
        model=parsed.model,
        version=parsed.version,
        fingerprint=now,
        session_verified=verified,
        process=held.process,
        unknown_events=parsed.unknown_events,
        unread_lines=parsed.unread_lines,
        notices=[*parsed.notices, *held.notices, *isolation_notices(trial)],
        error=error,
    )


def _command(profile: Profile) -> tuple[str, ...]:
    return tuple(profile.command or ("claude",))


def _environment(trial: TrialContext, login: Login) -> dict[str, str]:
    credentials: dict[str, str] = {}
    if login.variable is not None and login.value is not None:
        own = login.variable in KEY_VARIABLES
        credentials[login.variable if own else KEY_VARIABLES[0]] = login.value
    env = trial_environment(trial, HOME, credentials)
    address = {name: lookup(trial, name) for name in _ADDRESS_VARIABLES}
    address["ANTHROPIC_BASE_URL"] = trial.profile.base_url or address["ANTHROPIC_BASE_URL"]
    settings = {
        # One request a turn: no titles, no telemetry, no updates in the middle of a run.
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_AUTOUPDATER": "1",
        "CLAUDE_CODE_MAX_RETRIES": str(trial.profile.retries),
    }
    if trial.profile.isolation == "clean":
        settings["CLAUDE_CODE_DISABLE_AUTO_MEMORY"] = "1"
        # Its tools' output would otherwise stay in the system's temporary directory.
        settings["CLAUDE_CODE_TMPDIR"] = env["TMPDIR"]
    if trial.profile.permission == "full" and os.geteuid() == 0:
        # Without it claude refuses, as root, to do without permission prompts.
        settings["IS_SANDBOX"] = "1"
    given = {name: value for name, value in address.items() if value}
    return {**env, **given, **settings, **trial.extra_env}


def _engine_home(trial: TrialContext) -> Path:
    return HOME.of(_environment(trial, find_login(trial, KEY_VARIABLES)))


def _placed(engine_home: Path, trial: TrialContext, notices: Sequence[str] = ()) -> CreatedSession:
    holds = fingerprint(engine_home, trial.session_id)
    return CreatedSession(SessionRef(trial.session_id), holds, tuple(notices))


def _explain(outcome: ProcessOutcome) -> Failure | None:
    """What stderr says, where no event came."""
    said = outcome.stderr_tail.strip()
    kind = kind_of_text(said)
    return Failure(kind, said) if kind else None


def _lost(session_id: str, loss: str, answer: str = "") -> TurnError:
    what = f"the session {session_id} no longer holds its earlier turns"
    return lost_session(CLI, what, loss, answer)


def _cost(held: ProcessTurn, profile: Profile) -> float | None:
    """By the profile's prices if it has any for the model, else as claude reckons it."""
    cost = cost_usd(profile, held.parsed.model, held.parsed.usage)
    return held.parsed.cost_usd if cost is None else cost


def _skill_by_command(
    turn: TurnRequest, trial: TrialContext, error: TurnError | None
) -> list[TranscriptItem]:
    """A skill that the prompt itself calls (`/name …`) loads without any event."""
    if not turn.slash_command or error is not None:
        return []
    name = turn.prompt.removeprefix("/").split(maxsplit=1)[0] if turn.prompt.strip() else ""
    if name not in trial.skills:
        return []
    call = ToolCall(id="prompt#skill", name="Skill", kind="skill", arguments={"skill": name})
    result = ToolResult(call_id=call.id, status="success", content="")
    return [
        TranscriptItem(type="tool_call", tool_call=call),
        TranscriptItem(type="tool_result", tool_result=result),
    ]
