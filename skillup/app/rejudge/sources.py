"""What `skillup judge` is pointed at: a run, a trial, a record, a judge input, or a session."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from skillup.app.runs import means_a_run, newest_runs, run_path
from skillup.checks.context import CannotEvaluateError
from skillup.errors import RunDirectoryError, UsageError
from skillup.frozen import frozen
from skillup.importers.judge_debug import is_judge_input, read_judge_input
from skillup.reports.text import shown_id
from skillup.schema.case import Case
from skillup.schema.grade import Stop
from skillup.schema.record import FileState, Record
from skillup.sessions.index import detect_format, find_session, session_format
from skillup.sessions.record import read_session, record_of_session
from skillup.store import RunDirectory, trials
from skillup.store.places import RUN_FILE
from skillup.workspace.snapshot import BlobStore

ReadFile = Callable[[FileState], bytes | None]
_HINT = (
    "give a run (its directory, its id or `last`), a trial's directory, a record.json, a "
    "judge-debug file of skill-up, a session of Claude Code or Codex, or a folder of sessions"
)


@frozen
class RecordSubject:
    """A record, and where its files and its older grade are."""

    job_id: str  # For a record that stands alone: the same form, made of what the record says
    record: Record
    read_file: ReadFile
    grade: Path | None  # The older grade; the file need not be there
    notes: Sequence[str] = ()  # What a user should know of how it was read


@dataclass(slots=True)
class RecordSource:
    """Subjects, one at a time: they are read anew each time."""

    path: Path
    kind: Literal["run", "record", "input", "session"]
    read: Callable[[RecordSource, Case | None, str], Iterator[RecordSubject]]
    run: RunDirectory | None = None  # The run that the records belong to, if it is there
    info: Mapping[str, Any] = field(default_factory=dict)  # Its run.json; a damaged one: nothing
    planned: frozenset[str] = frozenset()
    not_needed: frozenset[str] = frozenset()
    """Jobs of the run that it left out on purpose; they are not among those `planned`."""
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


@contextmanager
def open_source(
    target: str, *, workspace: Path | None = None, skill_dir: Path | None = None
) -> Iterator[RecordSource]:
    """What `target` names. Raises UsageError, RunDirectoryError if it is nothing of the kind."""
    path = Path(target)
    is_json = path.suffix == ".json" and path.is_file()
    if is_json and not (path.parent / RUN_FILE).is_file() and is_judge_input(path):
        # The contents of its workspace are kept as long as the source is in use.
        with tempfile.TemporaryDirectory(
            prefix="skillup-judge-", ignore_cleanup_errors=True
        ) as room:
            yield _input(path, workspace, skill_dir, BlobStore(Path(room)))
    elif workspace is not None or skill_dir is not None:
        what = f"{target}: --workspace and --skill-dir are for judge-debug files of skill-up"
        raise UsageError(what, hint="the records of skillup know their files themselves")
    else:
        yield _source(target, path, is_json=is_json)


def _source(target: str, path: Path, *, is_json: bool) -> RecordSource:
    if path.is_dir():
        if (path / RUN_FILE).is_file():
            return _run(path)
        if (path / trials.RECORD_FILE).is_file():
            return _alone(path / trials.RECORD_FILE)
        if any(path.rglob("*.jsonl")):
            return RecordSource(path, "session", _read_sessions)
        raise UsageError(f"{target}: neither a run nor a trial, nor a session below", hint=_HINT)
    if is_json:  # a run's run.json or its result.json, or a record
        return _run(path.parent) if (path.parent / RUN_FILE).is_file() else _alone(path)
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
    source = RecordSource(path, "run", _read_run, run=run, info=run.run_info())
    try:
        result = run.read_result()
    except RunDirectoryError:  # one that was killed has not said what it left out
        pass
    else:
        source.not_needed, source.stopped = frozenset(result.not_needed), result.stopped
    source.planned = frozenset(source.info.get("jobs") or ()) - source.not_needed
    return source


def _read_run(source: RecordSource, *_: object) -> Iterator[RecordSubject]:
    """The trials that have a record, in the order of the plan; damaged ones are noted."""
    run = source.run
    assert run is not None
    order = {job: place for place, job in enumerate(source.info.get("jobs") or ())}
    found = trials.directories_with_records(source.path / "trials")
    for job_id, directory in sorted(found, key=lambda trial: order.get(trial[0], len(order))):
        try:
            record = trials.load_record(directory / trials.RECORD_FILE, run.written(job_id))
        except trials.DamagedRecordError as error:
            source.damaged[job_id] = f"its record {error.what}"
        except trials.ForeignRecordError as error:
            version = shown_id(error.version)  # it may be anything
            why = f"its record was written by another version of skillup ({version})"
            source.damaged[job_id] = why
        else:
            older = directory / trials.GRADE_FILE
            yield RecordSubject(job_id, record, run.blobs.read_state, older)


def _alone(path: Path) -> RecordSource:
    source = RecordSource(path, "record", _read_alone)
    for above in path.resolve().parents:
        if above.name == "trials" and (above.parent / RUN_FILE).is_file():
            source.run = RunDirectory.open(above.parent)
            with suppress(RunDirectoryError):
                source.info = source.run.run_info()
            break
    return source


def _read_alone(source: RecordSource, *_: object) -> Iterator[RecordSubject]:
    try:
        record = trials.load_record(source.path)
    except trials.DamagedRecordError:
        what = f"{source.path} is no record of skillup, or damaged"
        raise RunDirectoryError(what, hint=_HINT) from None
    job_id = _job_id(record)
    read_file: ReadFile = _no_files
    if source.run is not None:
        read_file = source.run.blobs.read_state
        here = source.path.resolve().parent
        directories = trials.directories_with_records(source.run.path / "trials")
        job_id = next((job for job, place in directories if place.resolve() == here), job_id)
        if source.path.name == trials.RECORD_FILE:
            record = source.run.read_record(job_id)
    yield RecordSubject(job_id, record, read_file, source.path.with_name(trials.GRADE_FILE))


def _job_id(record: Record, trial: object = None) -> str:
    last = record.trial if trial is None else trial
    return f"{record.case_id}/{record.engine.profile}/{record.variant}/{last}"


def _no_files(_: FileState) -> bytes | None:
    raise CannotEvaluateError(
        "the record stands outside of its run, and only the run has the contents of files: "
        "judge it inside the run's directory"
    )


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
    return RecordSubject(_job_id(record, name), record, _no_files, None, record.notes)


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
        yield RecordSubject(_job_id(record), record, blobs.read_state, None, given.notes)

    return RecordSource(path, "input", read)
