"""Engines made of descriptions, and their sessions that no model made: forked, or of a history."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any
from uuid import UUID, uuid5

import anyio.to_thread

from skillup.engines.base import Engine, EngineTurn, TrialContext
from skillup.engines.command.engine import DescribedEngine
from skillup.engines.command.values import filled, filled_arguments
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
from skillup.engines.session_files import VersionRange
from skillup.load.yaml_reader import read_yaml
from skillup.process.run import run_quiet
from skillup.schema.engine import AgentDescription, Seed, Store
from skillup.schema.record import HistoryItem
from skillup.workspace.disk import leads_out

_IMPORT_SECONDS = 60.0
_SHIPPED = Path(__file__).with_name("agents")
_FAILED = {"success": False, "error": True}


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
def shipped(name: str) -> AgentDescription:
    """The description of an agent that skillup ships."""
    return AgentDescription.model_validate(read_yaml(_SHIPPED / f"{name}.yaml").data)


def shipped_engine(name: str) -> Engine:
    """The engine for an agent whose description skillup ships."""
    return make_engine(name, shipped(name))


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
