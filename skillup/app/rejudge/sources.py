"""What `skillup judge` is pointed at: a run, a trial, a record, a judge input, or a session."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import field
from functools import partial
from pathlib import Path
from typing import Any, Literal

from skillup.app.runs import means_a_run, newest_runs, run_path
from skillup.checks.context import CannotEvaluateError
from skillup.dataclass import frozen, mutable
from skillup.errors import RunDirectoryError, UsageError
from skillup.importers.judge_debug import is_judge_input, read_judge_input
from skillup.schema.case import Case
from skillup.schema.grade import Grade, Stop
from skillup.schema.record import FileState, Record
from skillup.sessions.index import detect_format, find_session, session_format
from skillup.sessions.record import read_session, record_of_session
from skillup.store import RunDirectory, export
from skillup.store.places import RESULT_FILE, RUN_FILE
from skillup.store.remote import is_url
from skillup.store.stored_run import load_result
from skillup.workspace.snapshot import BlobStore

ReadFile = Callable[[FileState], bytes | None]
_HINT = (
    "give a run (its directory, its id or `last`), an exported run or trial, its record.json, a "
    "judge-debug file of skill-up, a session of Claude Code or Codex, or a folder of sessions"
)


@frozen
class RecordSubject:
    """A record, and where its files and its older grade are."""

    job_id: str  # For a record that stands alone: the same form, made of what the record says
    record: Record
    read_file: ReadFile
    grade: Callable[[Grade | None], Grade | None] = lambda _: None
    """The older grade; the one given, if it is the same."""
    notes: Sequence[str] = ()  # What a user should know of how it was read


@mutable
class RecordSource:
    """Subjects, one at a time: they are read anew each time."""

    path: Path
    kind: Literal["run", "record", "input", "session"]
    read: Callable[[RecordSource, Case | None, str], Iterator[RecordSubject]]
    run: RunDirectory | None = None  # The run that the records belong to, if it is there
    folder: Path | None = None  # That of this run, or of its export; later answers are kept there
    info: Mapping[str, Any] = field(default_factory=dict)  # What the run knows of itself
    planned: frozenset[str] = frozenset()
    not_needed: frozenset[str] = frozenset()
    """Jobs of the run that it left out on purpose; they are not among those `planned`."""
    since: str | None = None  # A judgement whose grades are the older ones
    stopped: Stop | None = None  # What ended the run early
    damaged: dict[str, str] = field(default_factory=dict)
    """Jobs whose record cannot be judged, and what is wrong with it, of the last reading."""
    mock_results: Sequence[Mapping[str, Any]] | None = None
    """What agent judges are taken to have said, of the last reading; None: they are asked."""

    @property
    def is_masked(self) -> bool:
        """Its records were written by a run, secrets masked: what judges them has to be, too."""
        return self.kind in ("run", "record")

    def subjects(self, case: Case | None = None, suite: str = "") -> Iterator[RecordSubject]:
        """In fixed order. A session is read as one of `case`, which it needs."""
        self.damaged.clear()
        return self.read(self, case, suite)


def open_source(
    target: str, *, workspace: Path | None = None, skill_dir: Path | None = None
) -> RecordSource:
    """What `target` names. Raises UsageError, RunDirectoryError if it is nothing of the kind."""
    path = Path(target)
    is_json = path.suffix == ".json" and path.is_file()
    if is_json and not (path.parent / RUN_FILE).is_file() and is_judge_input(path):
        return _input(path, workspace, skill_dir, BlobStore())
    if workspace is not None or skill_dir is not None:
        what = f"{target}: --workspace and --skill-dir are for judge-debug files of skill-up"
        raise UsageError(what, hint="the records of skillup know their files themselves")
    folder = path if path.is_dir() or path.name not in (RUN_FILE, RESULT_FILE) else path.parent
    if (folder / RUN_FILE).is_file():
        return _run(folder)
    if is_url(target):
        return _run(run_path(target))
    if (path.is_dir() or is_json) and (found := _exported(path)) is not None:
        return found
    if is_json or (path / export.RECORD_FILE).is_file():
        raise UsageError(f"{path} is not in the folder of an exported run", hint=_HINT)
    if path.is_dir():
        if any(path.rglob("*.jsonl")):
            return RecordSource(path, "session", _read_sessions)
        raise UsageError(f"{target}: neither a run nor a trial, nor a session below", hint=_HINT)
    if not path.is_file() and means_a_run(target):
        return _run(run_path(target))
    try:
        path = find_session(target, os.environ)
        session_format(path)  # before anything is said of cases that may be right
    except UsageError as error:
        both = error.message.replace("no session begins", "no run and no session begins", 1)
        raise UsageError(both, hint=f"{_HINT}; of runs, {newest_runs()}") from None
    return RecordSource(path, "session", lambda _, case, suite: iter([_session(path, case, suite)]))


def _run(path: Path) -> RecordSource:
    run = RunDirectory.open(path)
    run.database.check_unchanged()
    source = RecordSource(path, "run", _read_run, run=run)
    _know(source, run.run_info(), path)
    return source


def _know(source: RecordSource, info: Mapping[str, Any], folder: Path) -> None:
    """What the run in `folder`, or its export, says of itself and of its end."""
    source.info, source.folder = info, folder
    with suppress(RunDirectoryError):  # one that was killed has not said what it left out
        result = load_result(folder, cases=False)
        source.not_needed, source.stopped = frozenset(result.not_needed), result.stopped
    source.planned = frozenset(info.get("jobs") or ()) - source.not_needed


def _read_run(source: RecordSource, *_: object) -> Iterator[RecordSubject]:
    """The trials that have a record, in the order of the plan; damaged ones are noted."""
    run = source.run
    assert run is not None
    for found in run.finished(judgement=source.since):
        with _noted(source, found.job_id):
            record = found.record()
            yield RecordSubject(found.job_id, record, run.blobs.read_state, found.grade)


@contextmanager
def _noted(source: RecordSource, job: str) -> Iterator[None]:
    """Why a record cannot be read is noted."""
    try:
        yield
    except RunDirectoryError as error:
        source.damaged[job] = error.message.replace(f"the record of {job}", "its record")


# A run that `skillup export --format files` has written, or a part of it.


def _exported(path: Path) -> RecordSource | None:
    """The run, or of it the trial, that is at `path`; None if no exported run is around it."""
    here = path.resolve()
    here = here if here.is_dir() else here.parent
    for folder in (here, *here.parents):
        if (folder / export.INFO_FILE).is_file() and (folder / export.TRIALS_FOLDER).is_dir():
            source = RecordSource(path, "run", _read_exported)
            _know(source, export.load_info(folder), folder)
            if (here / export.RECORD_FILE).is_file():
                source.kind, source.planned = "record", frozenset()
                source.stopped, source.read = None, partial(_read_exported, only=here)
            return source
    return None


def _read_exported(
    source: RecordSource, *_: object, only: Path | None = None
) -> Iterator[RecordSubject]:
    """As :func:`_read_run`, of all trials or `only` that in this folder."""
    assert source.folder is not None
    order = {job: place for place, job in enumerate(source.info.get("jobs") or ())}
    trials = export.exported_trials(source.folder)
    for job, place in sorted(trials, key=lambda trial: order.get(trial[0], len(order))):
        if only in (None, place.resolve()):
            with _noted(source, job):
                found = export.exported_trial(job, place)
                content = partial(export.exported_content, source.folder)
                yield RecordSubject(job, found.record(), content, found.grade)


def _job_id(record: Record, trial: object = None) -> str:
    last = record.trial if trial is None else trial
    return f"{record.case_id}/{record.engine.profile}/{record.variant}/{last}"


def _no_files(_: FileState) -> bytes | None:
    raise CannotEvaluateError("a session is without its run, which has the contents of files")


def _read_sessions(source: RecordSource, case: Case | None, suite: str) -> Iterator[RecordSubject]:
    """Every session below a folder, by path; the files of sub-agents belong to their session."""
    for path in sorted(source.path.rglob("*.jsonl")):
        if path.name.startswith("agent-") or not path.is_file():
            continue
        try:
            # Others are files of the agent's, too, such as its history of prompts.
            if detect_format(path) is not None:
                yield _session(path, case, suite)
        except (UsageError, OSError) as error:
            source.damaged[str(path.relative_to(source.path))] = str(error)


def _session(path: Path, case: Case | None, suite: str) -> RecordSubject:
    """The session in `path` as a trial of `case`, with an id that is the same each time."""
    assert case is not None
    record = record_of_session(read_session(path), case, suite)
    name = (record.session_id or path.stem).replace("/", "_")
    return RecordSubject(_job_id(record, name), record, _no_files, notes=record.notes)


def _input(
    path: Path, workspace: Path | None, skill_dir: Path | None, blobs: BlobStore
) -> RecordSource:
    """A judge-debug file of skill-up: one execution, with the judge it names."""
    for option, folder in (("--workspace", workspace), ("--skill-dir", skill_dir)):
        if folder is not None and not folder.is_dir():
            raise UsageError(f"{option} {folder}: there is no such folder")

    def read(source: RecordSource, *_: object) -> Iterator[RecordSubject]:
        given = read_judge_input(path, blobs, workspace=workspace, skill_dir=skill_dir)
        source.mock_results = given.mock_results
        record = given.record
        yield RecordSubject(_job_id(record), record, blobs.read_state, notes=given.notes)

    return RecordSource(path, "input", read)
