"""Threads that are made without asking a model: seeded with a history, or copied from another."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from skillup.engines.base import Placed, SessionRef, TrialContext
from skillup.engines.codex_arguments import PROVIDER
from skillup.engines.codex_fork import fork_problem, forked_lines
from skillup.engines.codex_history import rollout_rows, row_bytes
from skillup.engines.codex_session import fingerprint, session_file
from skillup.engines.failures import Cli, turn_error
from skillup.engines.session_files import of_a_history
from skillup.engines.session_versions import VersionRange, format_problem
from skillup.schema.record import ErrorKind, HistoryItem
from skillup.workspace.full_disk import refuse_full_disk

SEEDED_VERSIONS = (VersionRange("0.145.0", "0.169.0"),)
"""Seeding and forking was tried with versions from one end of each range to the other."""
_INSTALL = "`npm install -g @openai/codex@VERSION`"


def seeding_problem(version: str | None) -> str | None:
    """Why threads of this version of `codex` cannot be written; None if they can."""
    return format_problem("codex", version, SEEDED_VERSIONS, _INSTALL)


def place_history(
    cli: Cli, home: Path, history: Sequence[HistoryItem], trial: TrialContext
) -> Placed:
    """Write `history` as the thread `trial.session_id` of the engine's `home`."""
    problem = seeding_problem(trial.version)
    if problem is not None or trial.version is None:
        return _failed(cli, "unsupported", problem or "")
    now = datetime.now(UTC)
    name = f"rollout-{now:%Y-%m-%dT%H-%M-%S}-{trial.session_id}.jsonl"
    rows = rollout_rows(
        history,
        thread_id=trial.session_id,
        timestamp=f"{now:%Y-%m-%dT%H:%M:%S}.{now.microsecond // 1000:03}Z",
        cwd=str(trial.workspace),
        version=trial.version,
        provider=PROVIDER if trial.profile.base_url else None,
    )
    path = home / "sessions" / f"{now:%Y}" / f"{now:%m}" / f"{now:%d}" / name
    try:
        _write(path, map(row_bytes, rows))
    except OSError as error:
        refuse_full_disk(error, home)
        return _failed(cli, "setup", f"the history could not be written: {error}")
    return Placed(SessionRef(trial.session_id), of_a_history(fingerprint(home, trial.session_id)))


def place_fork(
    cli: Cli,
    session: SessionRef,
    parent: tuple[Path, TrialContext],
    child: tuple[Path, TrialContext],
) -> Placed:
    """Copy the parent's thread as the thread `session_id` of the child; each with its home."""
    (parent_home, parent_trial), (home, trial) = parent, child
    source = session_file(parent_home, session.id)
    if source is None:
        return _failed(cli, "session_lost", f"the thread {session.id} has no file to be forked")
    path = home / source.relative_to(parent_home)
    path = path.with_name(source.name.replace(session.id, trial.session_id))
    # Codex tells the model where the skills in its home are, too.
    directories = {
        parent_trial.workspace: trial.workspace,
        parent_trial.home: trial.home,
        parent_home: home,
        parent_home.resolve(): home.resolve(),
    }
    try:
        with source.open("rb") as lines:
            problem = fork_problem(lines.readline(), session.id)
            if problem is not None:
                what = f"the thread {session.id} cannot be forked: {problem}"
                return _failed(cli, "unsupported", what)
            lines.seek(0)
            _write(path, forked_lines(lines, session.id, trial.session_id, directories))
    except OSError as error:
        refuse_full_disk(error, home)
        return _failed(cli, "setup", f"the thread {session.id} could not be forked: {error}")
    return _placed(home, trial.session_id)


def _write(path: Path, lines: Iterable[bytes]) -> None:
    """All the lines or none: half a thread would be resumed like a whole one. Raises OSError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f".{path.name}.part")
    try:
        with unfinished.open("wb") as file:
            file.writelines(lines)
        unfinished.replace(path)
    finally:
        with suppress(OSError):
            unfinished.unlink(missing_ok=True)


def _placed(home: Path, thread_id: str) -> Placed:
    return Placed(SessionRef(thread_id), fingerprint(home, thread_id))


def _failed(cli: Cli, kind: ErrorKind, what: str) -> Placed:
    return Placed(None, error=turn_error(cli, kind, what))
