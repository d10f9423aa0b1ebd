"""Where the sessions of the user's own agents are, newest first."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Literal

from skillup.engines.claude_code.engine import HOME as CLAUDE_HOME
from skillup.engines.cli_runner import as_dict, as_text
from skillup.engines.codex.engine import HOME as CODEX_HOME
from skillup.engines.session_entries import SessionFormat
from skillup.engines.session_files import lines_of
from skillup.errors import UsageError
from skillup.sessions.readers import HEAD_BYTES, SessionHead, detect_format, read_head

EngineName = Literal["claude_code", "codex"]

_ROLLOUT = re.compile(r"rollout-\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d-(?P<id>.+)\.jsonl")
_CWD = re.compile(rb'"cwd"\s*:\s*"((?:[^"\\]|\\.)*)"')
_MOST_SHOWN = 10
_HINT = "`skillup session list` shows the sessions that are here"


@dataclass(frozen=True, slots=True)
class SessionFile:
    """One session, by what its directory entry tells."""

    engine: EngineName
    session_id: str
    path: Path
    modified: float
    """Seconds since 1970."""
    size: int
    """Bytes."""


def session_homes(environment: Mapping[str, str]) -> dict[EngineName, Path]:
    """Where each CLI keeps its sessions; the directory need not be there."""
    return {
        "claude_code": CLAUDE_HOME.of(environment) / "projects",
        "codex": CODEX_HOME.of(environment) / "sessions",
    }


def session_files(homes: Mapping[EngineName, Path]) -> list[SessionFile]:
    """Every session below `homes`, the one that changed last first. Opens no file.

    The files of Claude Code's sub-agents are none: they belong to their session.
    """
    found = [*_claude_files(homes.get("claude_code")), *_codex_files(homes.get("codex"))]
    return sorted(found, key=lambda file: (-file.modified, file.session_id))


def heads(
    files: Sequence[SessionFile], project: Path | None = None
) -> Iterator[tuple[SessionFile, SessionHead]]:
    """Their heads, in order; with `project`, only of sessions held in it or below it.

    Files that are gone, cannot be read or are no sessions are left out.
    """
    wanted = None if project is None else {str(project.absolute()), str(project.resolve())}
    for file in files:
        try:
            if wanted is not None and not _may_be_of(file.path, wanted):
                continue
            head = read_head(file.path, file.size)
        except OSError:
            continue
        if head.format is not None and (wanted is None or _is_below(head.summary.cwd, wanted)):
            yield file, head


def newest_heads(
    files: Sequence[SessionFile], project: Path | None, limit: int
) -> list[tuple[SessionFile, SessionHead]]:
    """The first `limit` of :func:`heads`: no further file is opened."""
    return list(islice(heads(files, project), limit))


def count_sessions(files: Sequence[SessionFile]) -> int:
    """How many of them are sessions, by their first lines."""
    return sum(map(_is_session, files))


def _is_session(file: SessionFile) -> bool:
    try:
        return detect_format(file.path, HEAD_BYTES) is not None
    except OSError:
        return False


def find_session(reference: str, files: Sequence[SessionFile]) -> Path:
    """The file that a path, an id or the beginning of an id means.

    Raises UsageError if there is none, or more than one.
    """
    path = Path(reference)
    with suppress(OSError):  # a name that is too long for the system
        if path.is_file():
            return path
    if not reference or os.sep in reference or reference.endswith(".jsonl"):
        raise UsageError(f"{reference!r} is no file", hint=_HINT)
    exact = [file for file in files if file.session_id == reference]
    found = exact or [file for file in files if file.session_id.startswith(reference)]
    if not found:
        raise UsageError(f"no session begins with {reference!r}", hint=_HINT)
    if len(found) > 1:
        shown = [f"{file.engine}  {file.session_id}  {file.path}" for file in found[:_MOST_SHOWN]]
        if len(found) > _MOST_SHOWN:
            shown.append(f"… and {len(found) - _MOST_SHOWN} more")
        raise UsageError(
            f"{reference!r} may be any of {len(found)} sessions:\n  " + "\n  ".join(shown),
            hint="give more of the id, or the path",
        )
    return found[0].path


def session_format(path: Path) -> SessionFormat:
    """The format of a session file. Raises UsageError if it is none, or cannot be read."""
    try:
        found = detect_format(path)
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror or error}") from None
    if found is None:
        raise UsageError(
            f"{path} is no session of Claude Code or Codex",
            hint="a session file, or a recording of `--output-format stream-json` or `exec --json`",
        )
    return found


def _claude_files(projects: Path | None) -> Iterator[SessionFile]:
    for project in _entries(projects):
        if not project.is_dir():
            continue
        for entry in _entries(project):
            # Sub-agents had their files here before they got a directory of their own.
            if entry.name.endswith(".jsonl") and not entry.name.startswith("agent-"):
                yield from _session("claude_code", entry.name.removesuffix(".jsonl"), entry)


def _codex_files(directory: Path | os.DirEntry[str] | None) -> Iterator[SessionFile]:
    for entry in _entries(directory):
        rollout = _ROLLOUT.fullmatch(entry.name)
        if rollout is not None:
            yield from _session("codex", rollout["id"], entry)
        elif entry.is_dir(follow_symlinks=False):
            yield from _codex_files(entry)


def _session(engine: EngineName, session_id: str, entry: os.DirEntry[str]) -> Iterator[SessionFile]:
    try:
        status = entry.stat()
    except OSError:
        return
    # A pipe or a device would be read for ever.
    if stat.S_ISREG(status.st_mode):
        yield SessionFile(engine, session_id, Path(entry.path), status.st_mtime, status.st_size)


def _entries(directory: Path | os.DirEntry[str] | None) -> Iterator[os.DirEntry[str]]:
    """Of a directory that may not be there, or may not be read."""
    if directory is None:
        return
    try:
        with os.scandir(directory) as entries:
            yield from entries
    except OSError:
        return


def _may_be_of(path: Path, wanted: set[str]) -> bool:
    """Whether the head names such a directory at all: cheaper than to understand it."""
    with path.open("rb") as file:
        head = file.read(HEAD_BYTES)
    names = {match[1] for match in _CWD.finditer(head)}
    # An escaped name may be any.
    return any(b"\\" in name or _is_below(os.fsdecode(name), wanted) for name in names)


def _is_below(cwd: str | None, wanted: set[str]) -> bool:
    return cwd is not None and any(
        cwd == directory or cwd.startswith(directory.rstrip(os.sep) + os.sep)
        for directory in wanted
    )


# Which revision of a repository a session began at, where its file tells.

_HEAD_BYTES = 1 << 20


def revision_of(path: Path) -> str | None:
    """``branch main, commit 3f2a…``; None if the beginning of the file has neither.

    Codex writes a `git` object into its first row, Claude Code a `gitBranch` into every one.
    """
    for line in lines_of(path, _HEAD_BYTES):
        if isinstance(line.row, dict):
            told = _told(line.row)
            if told is not None:
                return told
    return None


def _told(row: dict[str, Any]) -> str | None:
    git = as_dict(as_dict(row.get("payload")).get("git") or row.get("git"))
    branch = as_text(row.get("gitBranch")) or as_text(git.get("branch"))
    commit = as_text(git.get("commit_hash"))
    parts = [f"branch {branch}"] if branch else []
    parts += [f"commit {commit}"] if commit else []
    return " ".join(", ".join(parts).split()) or None
