"""Sessions that are written without asking a model: seeded with a history, or forked."""

from __future__ import annotations

import os
import re
import shlex
import sqlite3
from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote

import anyio.to_thread

from skillup.engines.base import EngineTurn, TrialContext
from skillup.engines.cli_runner import CliEngine
from skillup.engines.session_files import json_line, moved_text, rewriting, rows_of
from skillup.schema.checks import ToolKind
from skillup.schema.record import ErrorKind, HistoryItem, ToolCall, TurnError
from skillup.workspace.disk import leads_out, open_at_once, refuse_full_disk, write_whole

Row = dict[str, Any]
# Of lines that the model's API refuses if a letter changes.
_SIGNED = re.compile(rb'"type": ?"(?:redacted_)?thinking"')

_NOT_IN_NAMES = re.compile(r"[^a-zA-Z0-9_-]")
_LONGEST_NAME = 64
_TABLES = "SELECT name FROM sqlite_master WHERE type = 'table' AND sql NOT LIKE '%VIRTUAL%'"


def api_name(text: str) -> str:
    """A tool's name as the models' APIs take it."""
    return _NOT_IN_NAMES.sub("_", text)[:_LONGEST_NAME]


OwnTools = Mapping[ToolKind, tuple[str, Mapping[str, str]]]
"""An engine's tool of each kind, and its names for arguments that other engines call so."""


def own_call(call: ToolCall, tools: OwnTools) -> tuple[str, str, dict[str, Any]]:
    """The MCP server ("": none), the tool and its arguments, as an engine with `tools` has them.

    A call with a name keeps that and its arguments; of others no argument takes another's place.
    """
    server, separator, tool = call.name.partition("::")
    if separator:
        return api_name(f"mcp__{server or 'unknown'}"), api_name(tool or "tool"), call.arguments
    if call.name:
        return "", api_name(call.name), call.arguments
    name, names = tools.get(call.kind, (call.kind, {}))
    arguments: dict[str, Any] = {}
    for key, value in call.arguments.items():
        own = names.get(key, key)
        is_command = call.kind == "shell" and isinstance(value, list)
        text = shlex.join(map(str, value)) if is_command else value
        arguments[key if own in call.arguments or own in arguments else own] = text
    return "", name, arguments


def with_own_ids(history: Sequence[HistoryItem]) -> list[HistoryItem]:
    """The history with ids of calls that the models' APIs take: short ones, each once."""
    made: list[HistoryItem] = []
    ids: dict[str, str] = {}  # of the latest call: the results that follow are of that
    count = 0
    for item in history:
        calls = []
        for call in item.tool_calls:
            count += 1
            ids[call.id] = f"call_{count}"
            calls.append(call.model_copy(update={"id": ids[call.id]}))
        result = item.tool_result
        if result is not None:
            result = result.model_copy(update={"call_id": ids[result.call_id]})
        made.append(item.model_copy(update={"tool_calls": calls, "tool_result": result}))
    return made


def iso_time(time: datetime) -> str:
    """As both CLIs write UTC."""
    return time.isoformat(timespec="milliseconds").replace("+00:00", "Z")


class UnwritableError(Exception):
    """A session cannot be written: of this kind, and why."""

    def __init__(self, kind: ErrorKind, why: str) -> None:
        super().__init__(why)
        self.kind = kind


class WritingCliEngine(CliEngine):
    """Its session files skillup can write, too; what is open here may raise UnwritableError."""

    session_folders: Sequence[str] = ()  # In the engine's home, with a folder for each session's id

    @abstractmethod
    def new_file(self, trial: TrialContext, engine_home: Path) -> Path:
        """Where a session that is written for `trial` belongs."""

    @abstractmethod
    def history_rows(
        self, history: Sequence[HistoryItem], trial: TrialContext
    ) -> tuple[list[Row], Sequence[str]]:
        """The lines of a session that holds `history`, in order, and notices."""

    def check_forkable(self, session_id: str, first: dict[str, Any]) -> None:
        """Refuses to copy a session that `first` begins, if a copy would not be all of it."""

    def seeding_problem(self, version: str | None) -> str | None:
        spec = self.spec
        if version is not None and spec.writable is not None and version in spec.writable:
            return None
        this = "the one here has no version" if version is None else f"here it is {version}"
        what = f"sessions can be written for {spec.name} {spec.writable}, {this}"
        return f"{what}: use one of these versions ({spec.install_writable})"

    async def seed(self, history: Sequence[HistoryItem], trial: TrialContext) -> EngineTurn:
        problem = self.seeding_problem(trial.version)
        if problem is not None:
            return EngineTurn(error=TurnError(kind="unsupported", message=problem))
        if refusal := self.refusal(trial, self.login(trial)):
            return EngineTurn(error=refusal)

        def write() -> EngineTurn:
            file = self.new_file(trial, self.engine_home(trial))
            rows, notices = self.history_rows(with_own_ids(history), trial)
            _write_whole(file, map(json_line, rows))
            taken = self.fingerprint(file, trial.session_id)
            seeded = taken and taken.model_copy(update={"seeded": True})
            return EngineTurn(trial.session_id, fingerprint=seeded, notices=tuple(notices))

        return await anyio.to_thread.run_sync(self._written, write, trial, "the history")

    async def fork(self, session: str, parent: TrialContext, child: TrialContext) -> EngineTurn:
        def write() -> EngineTurn:
            from html import escape

            source_home, home = self.engine_home(parent), self.engine_home(child)
            source = self.session_rows(parent, source_home, session)
            if source is None:
                raise UnwritableError("session_lost", f"it has no file in {source_home}")
            self.check_forkable(session, next(rows_of(source), {}))
            file = self.new_file(child, home)
            paths = {
                source.parent: file.parent,
                source_home: home,
                source_home.resolve(): home.resolve(),
                parent.home: child.home,
                parent.workspace: child.workspace,
            }
            # Some stand in URLs, or in messages to the model that look like XML.
            forms = {
                form(str(old)): form(str(new))
                for form in (quote, escape, str)
                for old, new in paths.items()
            }
            rewritten = rewriting(forms, {session: child.session_id})

            def moved(line: bytes) -> bytes:
                return line if _SIGNED.search(line) else rewritten(line)

            files = {source: file}
            root = source_home if parent.profile.isolation == "shared" else parent.home
            folders = {source.with_suffix(""): file.with_suffix("")}
            for name in self.session_folders:
                folders[source_home / name / session] = home / name / child.session_id
            for folder, copy in folders.items():
                # A copy of what a link leads to would show the child what its box hides.
                found = () if leads_out(folder, root) else folder.rglob("*")
                inner = (path for path in found if path.is_file() and not path.is_symlink())
                files |= {path: copy / path.relative_to(folder) for path in inner}
            for path, copy in files.items():
                with open_at_once(path) as lines:
                    _write_whole(copy, map(moved, lines))
            taken = self.fingerprint(file, child.session_id)
            return EngineTurn(child.session_id, fingerprint=taken)

        name = f"the {self.spec.session_word} {session}"
        return await anyio.to_thread.run_sync(self._written, write, child, name)

    def _written(
        self, write: Callable[[], EngineTurn], trial: TrialContext, what: str
    ) -> EngineTurn:
        try:
            return write()
        except (UnwritableError, OSError) as error:
            if isinstance(error, OSError):
                refuse_full_disk(error, trial.home)
            kind = error.kind if isinstance(error, UnwritableError) else "setup"
            message = f"{what} cannot be written as a session: {error}"
            return EngineTurn(error=self.error(kind, message))


def _write_whole(file: Path, lines: Iterable[bytes]) -> None:
    """All the lines or none: half a session would be resumed like a whole one. Raises OSError."""
    if file.exists():
        raise FileExistsError(f"{file} is there already")
    file.parent.mkdir(parents=True, exist_ok=True)
    write_whole(file, lines, 0o600)


def copy_database(source: Path, copy: Path, paths: Mapping[str, str]) -> None:
    """A copy in which old paths are new ones, in every text. Raises UnwritableError."""
    if not source.is_file():
        raise UnwritableError("session_lost", f"there is no {source}")
    try:
        with (
            closing(sqlite3.connect(f"{source.as_uri()}?mode=ro", uri=True)) as old,
            closing(sqlite3.connect(copy)) as new,
            new,
        ):
            old.backup(new)

            def moved(text: str) -> str:
                for before, after in paths.items():
                    text = moved_text(text, before, after)
                return text

            new.create_function("moved", 1, moved)
            for (table,) in new.execute(_TABLES).fetchall():
                for column in new.execute(f'PRAGMA table_info("{table}")').fetchall():
                    name = column[1]
                    holds = " OR ".join([f'instr("{name}", ?)'] * len(paths))
                    new.execute(
                        f'UPDATE "{table}" SET "{name}" = moved("{name}") '  # noqa: S608 - its own
                        f"WHERE typeof(\"{name}\") = 'text' AND ({holds})",
                        tuple(paths),
                    )
    except sqlite3.Error as refused:
        raise UnwritableError("setup", f"its database cannot be copied: {refused}") from refused


def copy_home(source: Path, copy: Path, paths: Mapping[str, str]) -> None:
    """All of an agent's home, in which old paths are new ones: texts, and databases of SQLite.

    What a model has signed stays as it is, and links are not followed. Raises UnwritableError.
    """
    moved = rewriting(paths, {})
    for folder, names, files in os.walk(source):
        for path in (Path(folder, name) for name in (*names, *files)):
            new = copy / path.relative_to(source)
            if path.is_symlink():
                new.symlink_to(path.readlink())
            elif path.is_dir():
                new.mkdir(exist_ok=True)
            elif path.is_file() and not path.name.endswith(("-wal", "-shm")):  # of a database
                data = path.read_bytes()
                if data.startswith(b"SQLite format 3\0"):
                    copy_database(path, new, paths)
                    continue
                lines = data.splitlines(keepends=True) if b"\0" not in data else ()
                texts = (one if _SIGNED.search(one) else moved(one) for one in lines)
                new.write_bytes(b"".join(texts) if lines else data)
                new.chmod(path.stat().st_mode)
