"""Custom engines, by skill-up's contract: a program or an HTTP service that gets a session input.

What it gives back is a session result (``custom.yaml``), or a text. Its session is its own: it is
handed the ``session_id`` of its last result, and nothing shows what it still knows of it.
"""

from __future__ import annotations

import json
import math
import os
import re
import stat
from collections.abc import Mapping
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio

from skillup.engines.base import Availability, Engine, EngineTurn, TrialContext, TurnRequest
from skillup.engines.cli_runner import CliTurn
from skillup.engines.command.engine import DescribedEngine, OneTurnEngine
from skillup.engines.command.events import DescribedEvents
from skillup.engines.environment import Login, find_login
from skillup.engines.events import Failure, as_text, kind_of_status
from skillup.load.yaml_reader import read_yaml
from skillup.process.run import ProcessOutcome
from skillup.schema.profile import AgentDescription, CustomEngine, Profile
from skillup.schema.record import SessionFingerprint, TurnError

_PLACEHOLDER = re.compile(r"\$\{([\w.-]+)\}")
_MOST_BYTES = 16 << 20  # Of a result
_UNPROVEN = "nothing shows that the agent still had its earlier turns, whose `session_id` it got"


def custom_engine(name: str, custom: CustomEngine) -> Engine:
    """The engine; only a stateful one can hold several turns."""
    data = read_yaml(Path(__file__).with_suffix(".yaml")).data | {"name": name}
    if custom.response_format == "text":
        data |= {"output": "text", "ends_with": "exit"}
    engine = CustomAgent(name, AgentDescription.model_validate(data), custom)
    return engine if custom.conversation_mode == "stateful" else OneTurnEngine(engine)


class CustomResult(DescribedEvents):
    """What one call gives back; it is read when the call has ended."""

    def __init__(self, about: AgentDescription, trial: TrialContext) -> None:
        super().__init__(about, None, trial.progress)
        self._lines: list[bytes] = []

    def feed(self, line: bytes) -> None:
        self._lines.append(line)

    def read(self, written: bytes, *, ended_well: bool) -> None:
        """Takes what was `written` elsewhere, else what was fed."""
        for line in [written] if written.strip() else self._lines:
            super().feed(line)
        self.end()
        self.response = self.response.strip()
        if ended_well and not self.finished and self._failure is None:
            what = "it gave no session result, a JSON object with `exit_code`"
            self._failure = Failure("protocol", what)


class CustomTurn(CliTurn):
    """One call."""

    parser: CustomResult

    def __init__(
        self, engine: CustomAgent, turn: TurnRequest, trial: TrialContext, resumed: str | None
    ) -> None:
        self.custom = engine.custom
        seconds = min(turn.timeout_seconds, self.custom.timeout_seconds or math.inf)
        limit = turn.limit if seconds == turn.timeout_seconds else ""
        turn = replace(turn, timeout_seconds=seconds, limit=limit)
        super().__init__(engine, turn, trial, resumed)
        self.refused: Failure | None = None  # Of the service: there is no result
        home, local = trial.home / "custom", self.custom.local
        self.places = {"input_file": home / "input.json", "output_file": home / "result.json"}
        for name in self.places if local is not None else ():
            values = {"workspace": str(trial.workspace), name: str(self.places[name])}
            given = getattr(local, name) or f"${{{name}}}"
            self.places[name] = trial.workspace / as_text(_filled(given, values))

    async def run(self) -> EngineTurn:
        previous = self.turn.previous
        if self.resumed is not None and not (previous and previous.session_id):
            what = "its last result had no `session_id` to go on with; the message was not sent"
            return EngineTurn(self.resumed, error=self.engine.error("protocol", what))
        return await super().run()

    def _changed(self, file: Path | None) -> TurnError | None:
        return None

    def _values(self) -> dict[str, Any]:
        """What placeholders stand for; `session_input` is the whole input of the call."""
        turn, profile, custom = self.turn, self.trial.profile, self.custom
        said = [{"role": "user", "content": turn.prompt}]
        if turn.system and turn.previous is None:
            said.insert(0, {"role": "system", "content": turn.system})
        values: dict[str, Any] = {
            "case_id": self.trial.case_id,
            "variant": self.trial.variant,
            "workspace": str(self.trial.workspace),
            "model": "/".join(filter(None, (custom.provider, profile.model))),
            "session_id": turn.previous.session_id if turn.previous else "",
            "messages": said,
            "max_turns": turn.max_steps or 0,
            "timeout_seconds": math.ceil(turn.timeout_seconds),
        }
        more = {
            **{name: str(path) for name, path in self.places.items()},
            "prompt": turn.prompt,
            "model_name": profile.model or "",
            "model_provider": custom.provider or "",
            "api_key": self.engine.login(self.trial).value or "",
        }
        values["kwargs"] = _filled(custom.kwargs, {**values, **more})
        more |= {f"kwargs.{name}": text for name, text in values["kwargs"].items()}
        made = {**values, **more, "session_input": {k: v for k, v in values.items() if v}}
        packed = ("session_input", "messages", "kwargs")
        return made | {f"{name}_json": _json(made[name]) for name in packed}

    async def _process(self, argv: tuple[str, ...], env: Mapping[str, str]) -> EngineTurn:
        """The turn as a process of the program, or as a request."""
        local, values = self.custom.local, self._values()
        if local is None:
            return await self._post(values)
        try:
            for path in self.places.values():
                path.parent.mkdir(parents=True, exist_ok=True)
                self._own(path).unlink(missing_ok=True)
            with self.places["input_file"].open("xb") as file:
                file.write(_json(values["session_input"]).encode("utf-8", "replace"))
        except OSError as trouble:
            return EngineTurn(error=self.engine.error("setup", f"`input_file`: {trouble}"))
        argv = tuple(as_text(_filled(text, values)) for text in (local.command, *local.args))
        if local.cwd is not None:
            place = self.trial.workspace / as_text(_filled(local.cwd, values))
            argv = ("/bin/sh", "-c", 'cd -- "$0" && exec "$@"', str(place), *argv)
        return await super()._process(argv, {**env, **_filled(self.custom.env, values)})

    def _own(self, path: Path) -> Path:
        """The path, if no link on its way leads out of the trial's folders. Raises OSError."""
        roots = self.trial.workspace, self.trial.home
        if not any(path.parent.resolve().is_relative_to(root.resolve()) for root in roots):
            raise OSError(f"{path} is not in the workspace")
        return path

    def _turn_of(self, outcome: ProcessOutcome, *more: Any) -> EngineTurn:
        written = b""
        try:
            if self.custom.local and self.custom.local.output_file:
                written = _content(self._own(self.places["output_file"]))
            for path in self.places.values():
                self._own(path).unlink(missing_ok=True)  # They are no work of the agent's
        except OSError as trouble:
            self.parser.notice(f"its files were not read: {trouble}")
        self.parser.read(written, ended_well=outcome.exit_code == 0)
        return super()._turn_of(outcome, *more)

    def _failure(self, outcome: ProcessOutcome) -> Failure | None:
        return self.refused or super()._failure(outcome)

    async def _post(self, values: Mapping[str, Any]) -> EngineTurn:
        """The turn as a request."""
        import aiohttp

        from skillup.gateway.server import open_client, proxy_to

        assert self.custom.http is not None
        http, trial, turn, raw = self.custom.http, self.trial, self.turn, b""
        if http.files:
            what = "`http.files` are not sent yet"
            return EngineTurn(error=self.engine.error("unsupported", what))
        url, body = as_text(_filled(http.url, values)), http.request_body or "${session_input}"
        headers = {"content-type": "application/json"}
        headers |= {name.lower(): text for name, text in _filled(http.headers, values).items()}
        try:
            with anyio.fail_after(turn.timeout_seconds):
                async with (
                    open_client(trial.environment) as client,
                    client.post(
                        url,
                        headers=headers,
                        data=_json(_filled(body, values)).encode("utf-8", "replace"),
                        proxy=proxy_to(url, trial.environment),
                        allow_redirects=False,
                    ) as answer,
                ):
                    async for part in answer.content.iter_any():
                        raw += part
                        if len(raw) > _MOST_BYTES:
                            self.refused = Failure("output_limit", "its answer is too long")
                            break
                    if self.refused is None and not 200 <= answer.status < 300:
                        wait = answer.headers.get("retry-after", "")
                        what = f"status {answer.status}" + f", retry-after: {wait}" * bool(wait)
                        what += f": {raw.decode(errors='replace')}"
                        self.refused = Failure(kind_of_status(answer.status), what)
        except (aiohttp.ClientError, OSError, ValueError) as trouble:
            why = getattr(trouble, "message", trouble)  # All of some names a proxy's password
            self.refused = Failure("network", f"{url}: {type(trouble).__name__} {why}")
            if type(trouble) is TimeoutError:  # And not one of the connection's
                limit = turn.limit or f"{turn.timeout_seconds:g} s"
                self.refused = Failure("timeout", f"no answer within {limit}")
        stem = turn.stem or f"turn-{turn.number:02d}"
        with closing(trial.streams.open(f"{stem}.stdout.jsonl")) as stream:
            stream.write(trial.secrets.mask_bytes(raw))
        if self.refused is None and raw.strip():
            self.parser.feed(raw)
        outcome = ProcessOutcome(None if self.refused else 0, None, "exit")
        return self._turn_of(outcome, ("POST", url), trial.secrets, raw)

    def _checked(self, file: Path | None, result: EngineTurn) -> EngineTurn:
        """That it took its session id says nothing of what it still knows: not verified."""
        previous, session = self.turn.previous, self.parser.session_id or ""
        number = previous.messages + 1 if previous is not None else 1
        now = SessionFingerprint(session_id=session, messages=number)
        return replace(
            result,
            session=session,
            fingerprint=now,
            session_verified=None if previous is None else False,
            notices=[*result.notices, *([_UNPROVEN] if previous is not None else [])],
        )


class CustomAgent(DescribedEngine):
    """A custom engine that holds several turns."""

    turns = CustomTurn
    model_address = None  # type: ignore[assignment]  # Only it knows: see AddressedEngine

    def __init__(self, name: str, about: AgentDescription, custom: CustomEngine) -> None:
        super().__init__(name, about)
        self.custom, self.spec = custom, replace(self.spec, takes_system=True)

    def command(self, profile: Profile) -> tuple[str, ...]:
        return ()

    def arguments(
        self, turn: TurnRequest, trial: TrialContext, session_id: str | None, login: Login
    ) -> list[str]:
        """The turn itself makes them, with the files that they name."""
        return []

    def parser(
        self, turn: TurnRequest, trial: TrialContext, session_id: str | None
    ) -> CustomResult:
        return CustomResult(self.about, trial)

    async def check(self, profile: Profile, environment: Mapping[str, str]) -> Availability:
        found = find_login(profile, environment, ())
        local, http = self.custom.local, self.custom.http
        problem = self.error("auth", found.missing) if found.missing else None
        if local is not None and not {"/", "$"} & {*local.command}:  # Others: in the workspace
            problem = self.missing(local.command, environment, Path.cwd()) or problem
        argv = (local.command, *local.args) if local else ("POST", http.url if http else "")
        login = found.variable or "its own"
        return Availability(problem is None, argv, login=login, problem=problem)


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _filled(template: Any, values: Mapping[str, Any]) -> Any:
    """A text that is one placeholder becomes its value; in other texts objects are JSON."""
    if isinstance(template, dict):
        return {name: _filled(one, values) for name, one in template.items()}
    if isinstance(template, list):
        return [_filled(one, values) for one in template]
    if not isinstance(template, str):
        return template
    whole = _PLACEHOLDER.fullmatch(template)
    if whole is not None and isinstance(found := values.get(whole[1]), dict | list):
        return found
    return _PLACEHOLDER.sub(lambda found: as_text(values.get(found[1], found[0])), template)


def _content(path: Path) -> bytes:
    """Of a regular file; nothing of what else an agent may have put there. Raises OSError."""
    if not path.exists():
        return b""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    with open(descriptor, "rb") as file:  # noqa: PTH123 - of a descriptor
        return file.read(_MOST_BYTES) if stat.S_ISREG(os.fstat(descriptor).st_mode) else b""
