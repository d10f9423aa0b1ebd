"""The sessions of the user's own agents: where they are, and what was said in one."""

from __future__ import annotations

import json
import os
import stat
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any

from rich.console import Console

from skillup.dataclass import frozen
from skillup.engines.registry import session_readers
from skillup.engines.session_files import SessionEntry, SessionReader, SessionSummary, lines_of
from skillup.errors import UsageError
from skillup.reports.terminal.conversation import ConversationStream
from skillup.reports.terminal.layout import Part, make_console, print_table
from skillup.reports.text import count, one_line
from skillup.trial.request import TrialEvent

_LINES_TO_TRY = 100

HEAD_BYTES = 128 << 10  # A rollout begins with about 40 kB of instructions before the first message


def detect_format(path: Path, limit: int | None = None) -> type[SessionReader] | None:
    """By the first line that says it, within `limit` bytes; None if none does. Raises OSError."""
    for line in islice(lines_of(path, limit), _LINES_TO_TRY):
        if isinstance(line.row, dict):
            for reader, _ in session_readers():
                if reader.matches(line.row):
                    return reader
    return None


def read_head(path: Path, size: int) -> SessionSummary | None:
    """What the first bytes of a file of `size` bytes tell, of a longer one branches and all.

    None if it is no session, or does not say so. Raises OSError.
    """
    found = detect_format(path, HEAD_BYTES)
    if found is None:
        return None
    reader = found()
    for _ in reader.read(path, HEAD_BYTES if size > HEAD_BYTES else None):
        pass
    return reader.summary


_MOST_SHOWN = 10
_HINT = "`skillup session list` shows the sessions that are here"


@frozen
class SessionFile:
    """One session, by its directory entry."""

    engine: str
    session_id: str
    path: Path
    modified: float  # Seconds since 1970
    size: int  # Bytes


def session_homes(environment: Mapping[str, str]) -> dict[str, Path]:
    """Where each CLI keeps its sessions; the directory need not be there."""
    return {each.engine: home.of(environment) / each.folder for each, home in session_readers()}


def session_files(homes: Mapping[str, Path]) -> list[SessionFile]:
    """Every session below `homes`, the one that changed last first. Opens no file."""
    found: list[SessionFile] = []
    for reader in (each for each, _ in session_readers() if each.engine in homes):
        directory = homes[reader.engine]
        for path in directory.rglob("*.jsonl"):
            session_id = reader.id_in(path, directory)
            with suppress(OSError):
                status = path.stat()
                # A pipe or a device would be read for ever.
                if session_id is not None and stat.S_ISREG(status.st_mode):
                    size, changed = status.st_size, status.st_mtime
                    found.append(SessionFile(reader.engine, session_id, path, changed, size))
    return sorted(found, key=lambda file: (-file.modified, file.session_id))


def newest_heads(
    files: Sequence[SessionFile], project: Path | None, limit: int
) -> list[tuple[SessionFile, SessionSummary]]:
    """The first `limit` that can be read; with `project`, only those held in it or below it."""
    found: list[tuple[SessionFile, SessionSummary]] = []
    folders = () if project is None else (project.absolute(), project.resolve())
    names = [json.dumps(str(folder), ensure_ascii=False)[1:-1] for folder in folders]
    for file in files:
        if len(found) == limit:
            break
        with suppress(OSError):
            if project is not None:  # of thousands few are the project's: reading all takes long
                with file.path.open("rb") as stream:
                    data = stream.read(HEAD_BYTES).decode(errors="replace")
                if not any(name in data for name in names):
                    continue
            head = read_head(file.path, file.size)
            if head is None:
                continue
            cwd = Path(head.cwd or "")
            if project is None or any(cwd.is_relative_to(folder) for folder in folders):
                found.append((file, head))
    return found


def find_session(reference: str, environment: Mapping[str, str]) -> Path:
    """The only file that a path, an id or the beginning of an id means. Raises UsageError."""
    path = Path(reference)
    with suppress(OSError):  # a name that is too long for the system
        if path.is_file():
            return path
    if not reference or os.sep in reference or reference.endswith(".jsonl"):
        raise UsageError(f"{reference!r} is no file", hint=_HINT)
    files = session_files(session_homes(environment))
    found = [file for file in files if file.session_id.startswith(reference)]
    found = [file for file in found if file.session_id == reference] or found
    if not found:
        raise UsageError(f"no session begins with {reference!r}", hint=_HINT)
    if len(found) > 1:
        shown = [f"{file.engine}  {file.session_id}  {file.path}" for file in found[:_MOST_SHOWN]]
        raise UsageError(
            f"{reference!r} may be any of {len(found)} sessions, such as\n  " + "\n  ".join(shown),
            hint="give more of the id, or the path",
        )
    return found[0].path


def session_format(path: Path) -> type[SessionReader]:
    """The format of a session file. Raises UsageError if it is none, or cannot be read."""
    try:
        found = detect_format(path)
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror or error}") from None
    if found is None:
        labels = " or ".join(each.label for each, _ in session_readers())
        raise UsageError(f"{path} is no session of {labels}", hint=_HINT)
    return found


def session_as_dict(file: SessionFile, head: SessionSummary) -> dict[str, Any]:
    """For ``--json``; `turns` are those of the head if `turns_complete` is false."""
    return {
        **_about(file.engine, file.path, head),
        "session_id": file.session_id,
        "modified": datetime.fromtimestamp(file.modified, UTC).isoformat(timespec="seconds"),
        "turns_complete": file.size <= HEAD_BYTES,
        "size": file.size,
    }


def print_sessions(found: Sequence[tuple[SessionFile, SessionSummary]], *, more: bool) -> None:
    """One table to stdout, and whether there may be more."""
    console = make_console(sys.stdout)
    cells: list[list[Part]] = []
    for file, head in found:
        changed = datetime.fromtimestamp(file.modified).astimezone()
        cells.append(
            [
                (one_line(file.session_id, 40), "cyan"),
                file.engine,
                changed.strftime("%Y-%m-%d %H:%M"),
                f"{'' if file.size <= HEAD_BYTES else '≥'}{head.turns}",
                one_line(head.cwd or "–", 60),
                one_line(head.first_words or head.title or "", 80),
            ]
        )
    heads = ["session", "engine", "last change", "turns", "project", "first words"]
    print_table(console, cells, heads, align="nnnrll", style="bold")
    if more:
        console.print("there may be more: --limit shows them", style="dim")


def head_lines(engine: str, path: Path, summary: SessionSummary) -> Iterator[str]:
    yield one_line(f"{engine} {summary.session_id or path.stem}", 200)
    fields = {"title": summary.title, "project": summary.cwd, "started": summary.started}
    fields |= {"model": summary.model, "version": summary.version, "file": str(path)}
    for name, value in fields.items():
        if value:
            yield f"  {name:<8} {one_line(value, 300)}"


def print_entries(entries: Iterable[SessionEntry], console: Console, *, full: bool = False) -> None:
    """As conversations of a run are printed: shortened, unless `full`."""
    stream = ConversationStream(console, full=full)
    for entry in entries:
        if entry.role == "user":
            sent = TrialEvent("", "message_sent", entry.turn, text=entry.item.text or "")
            stream.add(sent, "")
        elif entry.item.text or entry.role.startswith("tool_"):
            stream.add(TrialEvent("", "item", entry.turn, item=entry.item), "")


def foot_lines(summary: SessionSummary) -> Iterator[str]:
    """What stands below it: counts, and all that was left out or not understood."""
    yield ""
    yield count(summary.turns, "turn")
    if summary.unknown_lines:
        yield f"{count(summary.unknown_lines, 'line')} not understood"
    if summary.truncated:
        yield "the last line is cut off: the session is being written, or its writer was stopped"


def session_json(
    engine: str, path: Path, entries: Iterable[SessionEntry], summary: SessionSummary
) -> str:
    """``{"entries": [...], "session": {...}}``; `summary` is complete when all have been read."""
    rows = [
        {
            **{name: getattr(entry, name) for name in ("line", "timestamp", "turn", "role")},
            **entry.item.model_dump(exclude_none=True, exclude={"type"}),
        }
        for entry in entries
    ]
    data = {"entries": rows, "session": _about(engine, path, summary)}
    return json.dumps(data, ensure_ascii=False, indent=1) + "\n"


def _about(engine: str, path: Path, summary: SessionSummary) -> dict[str, Any]:
    return {"engine": engine, "path": str(path), **asdict(summary)}
