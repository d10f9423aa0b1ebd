"""Any CLI agent that is described in YAML: shipped ones, and those of profiles."""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Collection, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import replace
from glob import escape
from pathlib import Path
from typing import Any

from skillup.engines.base import EngineTurn, TrialContext, TurnRequest
from skillup.engines.cli_runner import CliEngine, CliSpec
from skillup.engines.command.events import DescribedEvents
from skillup.engines.command.values import filled, filled_arguments, holds, names_in
from skillup.engines.environment import EngineHome, Login, trial_environment
from skillup.engines.session_files import json_line
from skillup.schema.engine import AgentDescription
from skillup.schema.profile import Profile
from skillup.schema.record import TurnError
from skillup.workspace.disk import leads_out

_SECONDS, _STEPS = 10.0, 100_000
_READS = ("SELECT", "READ", "FUNCTION", "RECURSIVE")
_READ_CODES = {getattr(sqlite3, f"SQLITE_{name}") for name in _READS}


class DescribedEngine(CliEngine):
    """Runs what a description says."""

    def __init__(self, name: str, about: AgentDescription) -> None:
        self.name, self.about = name, about
        home = about.home
        everywhere = [about.arguments, about.start, about.resume or [], about.env, about.files]
        self._uses = names_in([*everywhere, about.permission.model_dump()])
        self.spec = CliSpec(
            name=about.name,
            install=about.install,
            login=about.login,
            skill_directory=about.skills[0],
            home=EngineHome(home.variable or "", home.folder) if home else None,
            takes_ids="session" in names_in([*about.start, *about.arguments]),
            stderr={kind: tuple(parts) for kind, parts in about.errors.items()},
            exit_codes=about.exit_codes,
            takes_system="system" in self._uses,
        )

    def refusal(self, trial: TrialContext, login: Login) -> TurnError | None:
        profile = trial.profile
        if getattr(self.about.permission, profile.permission) is None:
            what = f"it cannot be held to `permission: {profile.permission}`"
            return self.error("unsupported", f"{what}; see what its engine has")
        in_files = profile.base_url and "base_url" in names_in(self.about.files)
        if in_files and profile.isolation == "shared":
            what = "with `isolation: shared` your own settings say where its model is"
            return self.error("unsupported", f"{what}: leave `base_url` out")
        return super().refusal(trial, login)

    def arguments(
        self, turn: TurnRequest, trial: TrialContext, session_id: str | None, login: Login
    ) -> list[str]:
        about, values = self.about, self._values(trial, login)
        limit = turn.max_steps or trial.profile.max_turns
        values |= {"system": turn.system, "max_turns": limit}
        values["session"] = session_id or trial.session_id
        if trial.profile.isolation == "clean":
            self._write_files(trial, values)
        session = about.start if session_id is None else about.resume or []
        mode = getattr(about.permission, trial.profile.permission) or []
        mode = mode if isinstance(mode, list) else []
        given = filled_arguments([*about.arguments, *mode, *session], values)
        given += trial.profile.args
        return [*given, self._prompt(turn)] if about.prompt == "argument" else given

    def _prompt(self, turn: TurnRequest) -> str:
        """The message, so that the CLI does not take it for one of its commands."""
        begins = (key for key in self.about.escape if turn.prompt.startswith(key))
        key = next(begins, "")
        return self.about.escape.get(key, "") + turn.prompt.removeprefix(key)

    def standard_input(self, turn: TurnRequest) -> bytes:
        by_stdin = self.about.prompt == "stdin"
        return self._prompt(turn).encode("utf-8", "replace") if by_stdin else b""

    def _values(self, trial: TrialContext, login: Login) -> dict[str, Any]:
        """What placeholders stand for, but for what is of one turn."""
        profile, gateway = trial.profile, trial.gateway
        return {
            "model": profile.model,
            "base_url": gateway.url if gateway is not None else self._base_url(trial),
            "key": login.value,
            "key_variable": login.variable,
            "retries": profile.retries,
            "attempts": profile.retries + 1,
            "workspace": str(trial.workspace),
            "home": str(trial.home / "home"),
        }

    def _base_url(self, trial: TrialContext) -> str | None:
        name = self.about.address.variable or ""
        own = trial.extra_env.get(name), trial.environment.get(name)
        return own[0] or trial.profile.base_url or own[1]

    def _write_files(self, trial: TrialContext, values: Mapping[str, Any]) -> None:
        home = trial.home / "home"
        for name, template in self.about.files.items():
            content = filled(template, values)
            if not isinstance(content, str | dict | list):
                continue
            text = content if isinstance(content, str) else json.dumps(content)
            path = home
            for part in Path(name).parts:
                path /= part
                if path.is_symlink():  # The agent's: it would lead out of its home
                    path.unlink()
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, "utf-8")

    def environment(self, trial: TrialContext, login: Login) -> dict[str, str]:
        mode = getattr(self.about.permission, trial.profile.permission)
        variables = {**self.about.env, **(mode if isinstance(mode, dict) else {})}
        given = filled(variables, self._values(trial, login))
        env = trial_environment(trial, self.spec.home, given)
        if trial.gateway is not None:  # it outranks an address in `env`
            env |= {k: v for k, v in given.items() if k == self.about.address.variable}
        return env

    def engine_home(self, trial: TrialContext, env: Mapping[str, str] | None = None) -> Path:
        env = env or self.environment(trial, self.login(trial))
        return super().engine_home(trial, env) if self.spec.home else Path(env["HOME"])

    def key_variables(self, profile: Profile, environment: Mapping[str, str]) -> Sequence[str]:
        return self.about.keys

    def uses_login_file(self, profile: Profile) -> bool:
        """Where it has none, the CLI itself may know one; not for an address of the profile."""
        return not profile.base_url

    def model_address(self, trial: TrialContext) -> tuple[str, Collection[str | None]] | None:
        """Where it asks else, and the variables of its keys."""
        url = self._base_url(trial) or self.about.address.default
        if url is None or "base_url" not in self._uses:
            return None
        return url, {*self.about.keys, trial.profile.api_key_env}

    def parser(
        self, turn: TurnRequest, trial: TrialContext, session_id: str | None
    ) -> DescribedEvents:
        chosen = trial.session_id if self.spec.takes_ids else None
        return DescribedEvents(self.about, session_id or chosen, trial.progress)

    def session_file(self, engine_home: Path, session_id: str) -> Path | None:
        store = self.about.store
        if store is None or store.files is None:
            return None
        values = {"session": escape(session_id), "session_start": escape(session_id[:8])}
        return min(engine_home.glob(filled(store.files, values)), default=None)

    def session_rows(self, trial: TrialContext, engine_home: Path, session_id: str) -> Path | None:
        """Of a database a copy; not as JSON lines, which could be put back as they were."""
        store = self.about.store
        if store is None or store.sqlite is None:
            return super().session_rows(trial, engine_home, session_id)
        copy, database = trial.home / f"{session_id}.rows", engine_home / store.sqlite
        if trial.profile.isolation != "shared" and leads_out(database, trial.home):
            return None  # the agent has made it a link
        return dump_rows(database, store.rows or "", session_id, copy)

    def session_files(self, engine_home: Path) -> Collection[Path]:
        store = self.about.store
        if store is None or store.files is None:
            return ()
        return set(engine_home.glob(filled(store.files, {"session": "*", "session_start": "*"})))

    def is_user_message(self, row: dict[str, Any]) -> bool:
        with suppress(TimeoutError):  # Without its messages the session counts as lost
            return self.about.store is not None and holds(self.about.store.message, row)
        return False

    def finish(
        self, result: EngineTurn, turn: TurnRequest, trial: TrialContext, file: Path | None
    ) -> EngineTurn:
        """Says what of the profile was not applied."""
        asked = {
            "max_turns": turn.max_steps or trial.profile.max_turns,
            "model": trial.profile.model,
        }
        ignored = [name for name, value in asked.items() if value and name not in self._uses]
        notes = [f"{self.about.name} has no `{name}`: it was not applied" for name in ignored]
        return replace(result, notices=[*result.notices, *notes])


def dump_rows(database: Path, query: str, session_id: str, to: Path) -> Path | None:
    """The rows of a session as lines of JSON in the file `to`; None if there are none.

    The query can read that database and nothing else, for some seconds.
    """
    to.unlink(missing_ok=True)
    if not database.is_file():
        return None
    with closing(sqlite3.connect(f"{database.as_uri()}?mode=ro", uri=True)) as opened:
        opened.set_authorizer(lambda what, *_: int(what not in _READ_CODES))  # 1: SQLITE_DENY
        end = time.monotonic() + _SECONDS
        opened.set_progress_handler(lambda: time.monotonic() > end, _STEPS)
        try:
            found = opened.execute(query, {"session": session_id})
            names = [column[0] for column in found.description or ()]
            lines = [json_line(dict(zip(names, row, strict=True))) for row in found]
        except sqlite3.Error:  # No such table yet, the file is none, or the query does more
            return None
    if lines:
        to.write_bytes(b"".join(lines))
    return to if lines else None
