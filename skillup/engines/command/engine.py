"""Any CLI agent that is described in YAML: shipped ones, and those of profiles.

Their sessions can be forked, and be made of a history, where the description says how.
"""

from __future__ import annotations

import json
import re
import sqlite3
import time
from collections.abc import Collection, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import cache
from glob import escape
from pathlib import Path
from typing import Any
from uuid import UUID, uuid5

import anyio.to_thread

from skillup.engines.base import Engine, EngineTurn, TrialContext, TurnRequest
from skillup.engines.cli_runner import CliEngine, CliSpec
from skillup.engines.command.events import DescribedEvents
from skillup.engines.command.values import filled, filled_arguments, holds, names_in
from skillup.engines.created_sessions import (
    OwnTools,
    Row,
    UnwritableError,
    WritingCliEngine,
    copy_database,
    iso_time,
    own_call,
    with_own_ids,
)
from skillup.engines.environment import EngineHome, Login, trial_environment
from skillup.engines.session_files import VersionRange, json_line
from skillup.load.yaml_reader import read_yaml
from skillup.process.run import run_quiet
from skillup.schema.profile import AgentDescription, Profile, Seed, Store
from skillup.schema.record import HistoryItem, TurnError
from skillup.workspace.disk import leads_out

_SECONDS, _STEPS = 10.0, 100_000
_READS = ("SELECT", "READ", "FUNCTION", "RECURSIVE")
_READ_CODES = {getattr(sqlite3, f"SQLITE_{name}") for name in _READS}
_IMPORT_SECONDS = 60.0
_SHIPPED = Path(__file__).with_name("agents")
_FAILED = {"success": False, "error": True}


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
            skill_directories=about.skills[:1],
            home=EngineHome(home.variable or "", home.folder) if home else None,
            keys=about.keys,
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
        key = next((key for key in self.about.escape if turn.prompt.startswith(key)), "")
        return self.about.escape.get(key, "") + turn.prompt.removeprefix(key)

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
        message = self._prompt(turn) if self.about.prompt == "stdin" else ""
        return DescribedEvents(self.about, session_id or chosen, trial.progress).asking(message)

    def session_rows(self, trial: TrialContext, engine_home: Path, session_id: str) -> Path | None:
        """Of a database a copy; not as JSON lines, which could be put back as they were."""
        store = self.about.store
        if store is None or store.sqlite is None:
            return super().session_rows(trial, engine_home, session_id)
        copy, database = trial.home / f"{session_id}.rows", engine_home / store.sqlite
        if trial.profile.isolation != "shared" and leads_out(database, trial.home):
            return None  # the agent has made it a link
        return dump_rows(database, store.rows or "", session_id, copy)

    def session_files(self, engine_home: Path, session_id: str | None = None) -> Collection[Path]:
        store = self.about.store
        if store is None or store.files is None:
            return ()
        values = {"session": "*", "session_start": "*"}
        if session_id is not None:
            values = {"session": escape(session_id), "session_start": escape(session_id[:8])}
        return set(engine_home.glob(filled(store.files, values)))

    def is_user_message(self, row: dict[str, Any]) -> bool:
        with suppress(TimeoutError):  # Without its messages the session counts as lost
            return self.about.store is not None and holds(self.about.store.message, row)
        return False

    def finish(
        self, result: EngineTurn, turn: TurnRequest, trial: TrialContext, file: Path | None
    ) -> EngineTurn:
        """Says what of the profile was not applied."""
        limit = turn.max_steps or trial.profile.max_turns
        asked = {"max_turns": limit, "model": trial.profile.model}
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


class WritingDescribedEngine(DescribedEngine, WritingCliEngine):
    """Its sessions can be copied, and written if there is a `seed`."""

    def __init__(self, name: str, about: AgentDescription, store: Store) -> None:
        super().__init__(name, about)
        self.store = store
        if store.seed is not None:
            versions = VersionRange(*store.seed.versions)
            self.spec = replace(self.spec, writable=versions, install_writable=about.install)

    def seeding_problem(self, version: str | None) -> str | None:
        if self.store.seed is None:
            return f"skillup does not know how to write a session of {self.about.name}"
        return super().seeding_problem(version)

    def new_file(self, trial: TrialContext, engine_home: Path) -> Path:
        return engine_home / str(filled(self.store.new, self._of_session(trial)))

    def history_rows(
        self, history: Sequence[HistoryItem], trial: TrialContext
    ) -> tuple[list[Row], Sequence[str]]:
        seed = self.store.seed
        assert seed is not None
        values = {**self._values(trial, self.login(trial)), **self._of_session(trial)}
        return list(rows_of_history(seed, history, values)), ()

    def _of_session(self, trial: TrialContext) -> dict[str, Any]:
        """What the templates of a session's name and rows know of it."""
        now, workspace = datetime.now(UTC), str(trial.workspace)
        return {
            "session": trial.session_id,
            "session_start": trial.session_id[:8],
            "session_hex": UUID(trial.session_id).hex,
            "version": trial.version,
            "workspace": workspace,
            "workspace_name": trial.workspace.name,
            "workspace_slug": re.sub("[^a-zA-Z0-9]", "-", workspace),
            "workspace_dashed": re.sub(r"[/\\:]", "-", workspace.lstrip("/")),
            "minute": f"{now:%Y-%m-%dT%H-%M}",
            "second": f"{now:%Y-%m-%dT%H-%M-%S-000Z}",
        }

    async def seed(self, history: Sequence[HistoryItem], trial: TrialContext) -> EngineTurn:
        """By the CLI's own import, where there is one."""
        seed = self.store.seed
        problem = self.seeding_problem(trial.version)
        if problem is not None or seed is None or seed.document is None:
            return await super().seed(history, trial)
        rows, _ = self.history_rows(with_own_ids(history), trial)
        values = {**self._values(trial, self.login(trial)), **self._of_session(trial)}
        trial.home.mkdir(parents=True, exist_ok=True)
        values |= {"rows": rows, "file": str(trial.home / "history.json")}
        Path(values["file"]).write_text(json.dumps(filled(seed.document, values)), "utf-8")
        env = self.environment(trial, self.login(trial))
        argv = (*self.command(trial.profile), *filled_arguments(seed.import_ or [], values))
        done = await run_quiet(
            argv,
            cwd=trial.workspace,
            env=env,
            timeout_seconds=_IMPORT_SECONDS,
            run=trial.box.run,  # it reads what is in the workspace
        )
        session = filled(seed.session, values) if seed.session else trial.session_id
        file = self.session_rows(trial, self.engine_home(trial, env), session)
        taken = self.fingerprint(file, session)
        if taken is None:
            said = done.start_error or done.stderr or done.stdout
            return EngineTurn(error=self.error("setup", "the history was not imported", said))
        return EngineTurn(session, fingerprint=taken.model_copy(update={"seeded": True}))

    async def fork(self, session: str, parent: TrialContext, child: TrialContext) -> EngineTurn:
        """Of a database all of it is copied, with its session's id: each trial has its own."""
        database = self.store.sqlite
        if database is None:
            return await super().fork(session, parent, child)
        source, copy = (self.engine_home(trial) / database for trial in (parent, child))

        def write() -> EngineTurn:
            if parent.profile.isolation == "shared":
                raise UnwritableError("unsupported", "with `isolation: shared` it is yours")
            if leads_out(source, parent.home):
                raise UnwritableError("session_lost", f"{source} is a link to another file")
            copy.parent.mkdir(parents=True, exist_ok=True)
            paths = {parent.workspace: child.workspace, parent.home: child.home}
            copy_database(source, copy, {str(old): str(new) for old, new in paths.items()})
            file = self.session_rows(child, self.engine_home(child), session)
            return EngineTurn(session, fingerprint=self.fingerprint(file, session))

        what = f"the {self.spec.session_word} {session}"
        return await anyio.to_thread.run_sync(self._written, write, child, what)


def rows_of_history(
    seed: Seed, history: Sequence[HistoryItem], values: Mapping[str, Any]
) -> list[Row]:
    """The rows of a session's file, each a second after the one before, the last one now."""
    results = {one.tool_result.call_id: one.tool_result for one in history if one.tool_result}
    tools: OwnTools = {kind: (name, {}) for kind, name in seed.tools.items()}
    names: dict[str, str] = {}  # Of tools, by the ids of their calls
    base, now = UUID(str(values["session"])), datetime.now(UTC)
    templates: list[tuple[Row, dict[str, Any]]] = [(row, {}) for row in seed.begin]
    for item in history:
        text = {"text": item.content}
        if item.tool_result is not None:
            result = item.tool_result
            given: dict[str, Any] = {"call_id": result.call_id, "content": result.content}
            given |= {"failed": _FAILED.get(result.status), "name": names.get(result.call_id)}
            templates += [(seed.result, given)] if seed.result is not None else []
        elif item.role == "user":
            templates.append((seed.user, text))
        else:
            calls = []
            for call in item.tool_calls:
                server, name, arguments = own_call(call, tools)
                names[call.id] = f"{server}__{name}" if server else name
                known = results.get(call.id)
                of_call: dict[str, Any] = {"call_id": call.id, "name": names[call.id]}
                if known is not None:
                    of_call |= {"content": known.content, "failed": _FAILED.get(known.status)}
                calls.append({**of_call, "arguments": arguments})
            templates.append((seed.assistant, {**text, "calls": calls}))
    rows, parent = [], None
    for number, (template, own) in enumerate(templates, start=1):
        time = now - timedelta(seconds=len(templates) - number)
        row_id = str(uuid5(base, f"row {number}"))
        of_row = {**values, "id": row_id, "parent": parent, "time": iso_time(time)}
        of_row["milliseconds"] = round(time.timestamp() * 1000)
        of_row |= {"order": f"{number:012d}", "parent_order": f"{number - 1:012d}"}
        calls = [filled(seed.call, {**of_row, **call}) for call in own.get("calls", ())]
        rows.append(filled(template, {**of_row, **own, "calls": calls}))
        parent = row_id
    return rows


@cache
def shipped_engine(name: str) -> Engine:
    """The engine for an agent whose description skillup ships."""
    data = read_yaml(_SHIPPED / f"{name}.yaml").data
    return make_engine(name, AgentDescription.model_validate(data))


def make_engine(name: str, about: AgentDescription) -> Engine:
    """An engine that can do what the description says: capabilities are asked with isinstance."""
    store = about.store
    if about.resume is None:
        return OneTurnEngine(DescribedEngine(name, about))
    if store is None or (store.new is None and store.sqlite is None):
        return DescribedEngine(name, about)
    return WritingDescribedEngine(name, about, store)


class OneTurnEngine:
    """A described agent that cannot resume a session."""

    def __init__(self, engine: DescribedEngine) -> None:
        self.name = engine.name
        self.start, self.check = engine.start, engine.check
        self.skill_directories, self.model_address = engine.skill_directories, engine.model_address
