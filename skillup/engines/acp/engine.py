"""The `acp` engine: one for every agent that speaks the Agent Client Protocol."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio.to_thread

from skillup.engines.acp.events import AcpEvents
from skillup.engines.base import Availability, EngineTurn, TrialContext, TurnRequest
from skillup.engines.cli_runner import CliEngine, CliSpec, CliTurn
from skillup.engines.created_sessions import UnwritableError, copy_home
from skillup.engines.environment import Login, trial_environment
from skillup.engines.events import Failure, as_dict, failure_of_model
from skillup.gateway.meter import Route, flat
from skillup.process.live import LiveSlot
from skillup.process.run import ProcessRequest
from skillup.schema.profile import Profile
from skillup.schema.record import SessionFingerprint, TurnError

_FIELDS = {"base_url": "base_url", "key": "api_key_env", "model": "model"}
"""Filled in where `{…}` is in `env` or `args` of a profile; with its key that must be there."""
_FIELD = re.compile(rf"\{{({'|'.join(_FIELDS)})\}}")
_CHECK_SECONDS = 60.0
_Within = Callable[[ProcessRequest], ProcessRequest]


class AcpTurn(CliTurn):
    """A turn over the protocol: by a process of its own, or one that stays."""

    parser: AcpEvents

    def _changed(self, file: Path | None) -> TurnError | None:
        return None

    def _checked(self, file: Path | None, result: EngineTurn) -> EngineTurn:
        """The turn, with proof that its session held the earlier ones, and what it holds now."""
        parser, previous = self.parser, self.turn.previous
        error, verified = self._error_of_model(result.error), None
        if previous is not None:
            loss = self._loss(previous) if parser.loaded else None
            verified = loss is None and parser.session_id == self.resumed
            if loss is not None and (error is None or error.kind == "model_error"):
                error = self.engine.lost(self.resumed, loss, parser.response)
        now = _with_message(previous, parser.session_id, self.turn.prompt)
        # The gateway counts what each agent counts in its own way.
        return replace(
            result,
            session=parser.session_id,
            fingerprint=now if parser.prompted else previous,
            session_verified=verified,
            usage=result.usage if self.trial.gateway is None else None,
            error=error,
        )

    def _error_of_model(self, error: TurnError | None) -> TurnError | None:
        """By the model's last answer: agents hide its failures, or answer with them."""
        route, parser = self.trial.gateway, self.parser
        last = parser.last_answered if parser.finished else parser.look_at_model()
        if route is None or last is None:
            return error
        # The agent may have been ended in the middle of it; a provider may tell no usage.
        unexplained = error is None or error.kind == "protocol"
        cut = last.broken and (last.status is None or unexplained)
        empty = unexplained and not parser.items and last.ended and last.usage() is None
        if not (cut or empty or last.status not in (None, 200)):
            return error
        text = parser.failure.text if parser.failure else parser.response or "there was no answer"
        failure = failure_of_model(last, text.replace(route.url, route.upstream))
        evidence = error.evidence if error is not None else ""
        return self.engine.error(failure.kind, self.trial.secrets.mask(failure.text), evidence)

    def _loss(self, previous: SessionFingerprint) -> str | None:
        """Why the earlier turns are not known to be in the session that was loaded."""
        route, replayed = self.trial.gateway, self.parser.replayed
        continued = route.continued() if route is not None else None
        if continued is not None:
            return None if continued else "the requests to its model did not hold them"
        if replayed is None:
            return "the agent does not show what it loads, and its model is behind no gateway"
        now: SessionFingerprint | None = None
        for message in replayed:
            now = _with_message(now, previous.session_id, message)
        there = "\n".join(replayed)
        sent = f"it had been sent {previous.messages} messages, and loaded"
        return None if now == previous else f"{sent} {len(replayed)}:\n{there}"


class Acp(CliEngine):
    """Resumes sessions by loading them; what an agent can do, it says itself."""

    name = "acp"
    turns = AcpTurn
    spec = CliSpec(
        name="acp",
        install="install the agent, and name it in the profile's `command`, as [opencode, acp]",
        login="name the key's variable in `api_key_env`, and hand it on in `env` as {key}",
        # Claude's agent reads the second only; those that read both show a skill once.
        skill_directories=(".agents/skills", ".claude/skills"),
        takes_ids=False,
        takes_system=False,
        two_way=True,
    )
    _can_fork: bool | None = None

    def arguments(
        self, turn: TurnRequest | None, trial: TrialContext, session_id: str | None, login: Login
    ) -> list[str]:
        return [*map(_filling(trial.profile, login, trial.gateway), trial.profile.args)]

    def environment(self, trial: TrialContext, login: Login) -> dict[str, str]:
        own_name = login.variable and login.value and "key" not in _fields(trial.profile)
        fill = _filling(trial.profile, login, trial.gateway)
        own = {str(login.variable): login.value or ""} if own_name else {}
        filled = {name: fill(text) for name, text in trial.extra_env.items()}
        return {**trial_environment(trial, None, {}), **own, **filled}

    def model_address(self, trial: TrialContext) -> tuple[str, Collection[str | None]] | None:
        """The profile's, if the agent is told of it."""
        url, name = trial.profile.base_url, trial.profile.api_key_env
        return (url, {name}) if url and "base_url" in _fields(trial.profile) else None

    def parser(self, turn: TurnRequest, trial: TrialContext, session_id: str | None) -> AcpEvents:
        live, place = trial.live, _place(trial.workspace)
        before = live.parser_before if live is not None else None
        rules = trial.profile.permission, turn.answers
        parser = AcpEvents(turn.prompt, place, *rules, session_id, before, trial.progress)
        if trial.gateway is not None:
            parser.look_at_model = trial.gateway.last_answered
        if turn.max_steps is not None:
            parser.notice("`max_turns` is not applied: the protocol has no such limit")
        return parser

    def is_user_message(self, row: dict[str, Any]) -> bool:
        """Each agent knows for itself where its sessions are."""
        return False

    def refusal(self, trial: TrialContext, login: Login) -> TurnError | None:
        return self._problem(trial.profile) or super().refusal(trial, login)

    def _problem(self, profile: Profile) -> TurnError | None:
        """What the profile lacks."""
        uses = _fields(profile)
        lacks = [key for f, key in _FIELDS.items() if f in uses and not getattr(profile, key)]
        if lacks:
            what = f"the profile needs {', '.join(f'`{key}`' for key in lacks)}"
            return self.error("engine_not_usable", what)
        for key in ("model", "base_url"):
            if getattr(profile, key) and key not in uses:
                what = f"`{key}` has to be handed on in the profile's `env` or `args`, as {{{key}}}"
                return self.error("engine_not_usable", what)
        return None

    async def fork(self, session: str, parent: TrialContext, child: TrialContext) -> EngineTurn:
        """By the agent itself, in a copy of its home, where the parent's paths are the child's."""
        if parent.profile.isolation == "shared":
            what = "with `isolation: shared` its sessions are yours, and none is forked"
            return EngineTurn(error=self.error("unsupported", what))
        moves = {parent.workspace: child.workspace, parent.home: child.home}
        paths = {str(old): str(new) for old, new in moves.items()}
        try:
            await anyio.to_thread.run_sync(copy_home, parent.home, child.home, paths)
        except UnwritableError as why:
            return EngineTurn(error=self.error(why.kind, f"its home cannot be copied: {why}"))
        parser = AcpEvents(None, _place(child.workspace), child.profile.permission, forked=session)
        login = self.login(child)
        argv = (*self.command(child.profile), *self.arguments(None, child, None, login))
        env = self.environment(child, login)
        request = ProcessRequest(argv, child.workspace, env, marker=child.marker)
        failure = await self._asked(child.box.request, request, parser)
        error = self.error(failure.kind, failure.text) if failure else None
        return EngineTurn(parser.session_id, error=error)

    async def _asked(
        self, within: _Within, request: ProcessRequest, parser: AcpEvents
    ) -> Failure | None:
        """What went wrong when a process was asked for no turn."""
        about: Any = {"stdin": parser.outgoing, "timeout_seconds": _CHECK_SECONDS, "lingers": True}
        request = replace(request, has_answered=lambda: parser.closed, **about)

        def take(line: bytes) -> bytes:
            parser.outgoing = b""
            parser.feed(line)
            return parser.outgoing

        outcome = await LiveSlot(stays=False).run(within(request), take)
        if parser.finished or parser.failure:
            return parser.failure
        why = outcome.start_error or outcome.stderr_tail.strip() or "it gave no answer"
        return Failure("engine_not_usable", why.splitlines()[-1])

    async def check(self, profile: Profile, environment: Mapping[str, str]) -> Availability:
        return replace(await super().check(profile, environment), can_fork=self._can_fork)

    async def version(
        self, profile: Profile, login: Login, env: Mapping[str, str]
    ) -> tuple[TurnError | None, str | None]:
        """By a handshake, which every agent has."""
        if problem := self._problem(profile):
            return problem, None
        parser = AcpEvents(None, {}, profile.permission)
        fill = _filling(profile, login)
        argv = (*self.command(profile), *map(fill, profile.args))
        env = {**env, **{name: fill(text) for name, text in profile.env.items()}}
        request = ProcessRequest(argv, Path.cwd(), env)
        failure = await self._asked(lambda one: one, request, parser)
        self._can_fork = parser.can_fork
        if failure is None:
            return None, parser.version
        return self.error("engine_not_usable", f"the handshake failed: {failure.text}"), None


def _with_message(
    before: SessionFingerprint | None, session: str | None, message: str
) -> SessionFingerprint:
    """What a session holds with one more message of the user; its blanks do not count."""
    text = flat(message).encode("utf-8", "replace")
    had = before or SessionFingerprint(session_id=session or "", messages=0)
    return SessionFingerprint(
        session_id=had.session_id,
        messages=had.messages + 1,
        prefix_sha256=hashlib.sha256(had.prefix_sha256.encode() + text).hexdigest(),
        prefix_bytes=had.prefix_bytes + len(text),
    )


def _fields(profile: Profile) -> set[str]:
    """What the profile has to be filled in with."""
    return {*_FIELD.findall("\n".join((*profile.env.values(), *profile.args)))}


def _filling(profile: Profile, login: Login, route: Route | None = None) -> Callable[[str], str]:
    """Fills in a text of the profile's."""
    url = route.url if route is not None else profile.base_url
    values = {"base_url": url, "key": login.value, "model": profile.model}
    return lambda text: _FIELD.sub(lambda field: values[field[1]] or "", text)


def _place(workspace: Path) -> dict[str, Any]:
    """Of a session, with the servers of the workspace's `.mcp.json`, in the protocol's words."""
    read: Any = None
    with suppress(OSError, ValueError, RecursionError):
        read = json.loads((workspace / ".mcp.json").read_bytes())
    made: list[Mapping[str, Any]] = []
    for name, one in as_dict(as_dict(read).get("mcpServers")).items():
        given = {"args": [], "env": {}, "headers": {}, **as_dict(one), "name": name}
        by_url = {"type": "sse" if given.get("type") == "sse" else "http"}
        given |= by_url if "url" in given else {}
        for key in ("env", "headers"):
            pairs = as_dict(given[key]).items()
            given[key] = [{"name": each, "value": value} for each, value in pairs]
        keys = ("type", "url", "headers") if "url" in given else ("command", "args", "env")
        made.append({key: given.get(key) for key in ("name", *keys)})
    return {"cwd": str(workspace), "mcpServers": made}
