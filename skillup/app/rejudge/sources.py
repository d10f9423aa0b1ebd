"""What `skillup judge` is pointed at: a run, a trial, a record, a judge input, or a session."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from skillup.app.runs import (
    LAST,
    means_a_run,
    newest_runs,
    run_path,
)
from skillup.checks.context import CannotEvaluateError
from skillup.errors import RunDirectoryError, UsageError
from skillup.importers.judge_debug import InputPlaces, read_judge_input
from skillup.reports.text import shown_id
from skillup.schema.case import Case
from skillup.schema.record import RECORD_VERSION, FileState, Record
from skillup.store import RunDirectory, trials
from skillup.store.places import check_shape_of_run
from skillup.store.run_directory import RUN_FILE
from skillup.workspace import BlobStore

NO_CASE = UsageError(
    "a session has no case of its own",
    hint="give one with --cases; `skillup session to-case` writes one",
)
ReadFile = Callable[[FileState], bytes | None]
_HINT = (
    "give a run (its directory, its id or `last`), a trial's directory, a record.json, a "
    "judge-debug file of skill-up, "
    "a session of Claude Code or Codex, or a folder of sessions"
)


@dataclass(frozen=True, slots=True)
class RecordSubject:
    """A record, and where its files and its older grade are."""

    job_id: str
    """For a record that stands alone: the same form, made of what the record says."""
    record: Record
    read_file: ReadFile
    grade: Path | None
    """The older grade; the file need not be there."""
    notes: Sequence[str] = ()
    """What a user should know of how it was read."""


@dataclass(slots=True)
class RecordSource:
    """Subjects, one at a time: they are read anew each time."""

    path: Path
    kind: str
    """run, trial, record, input or session."""
    read: Callable[[RecordSource, Case | None, str], Iterator[RecordSubject]]
    run: Path | None = None
    """The run that the records belong to, if it is there."""
    planned: frozenset[str] = frozenset()
    not_needed: frozenset[str] = frozenset()
    """Jobs of the run that it left out on purpose; they are not among those `planned`."""
    stopped_by_failures: bool = False
    """A run that `--max-fail` ended: that is why trials are missing."""
    damaged: dict[str, str] = field(default_factory=dict)
    """Jobs whose record cannot be judged, and what is wrong with it, of the last reading."""
    mock_results: Sequence[Mapping[str, Any]] | None = None
    """What agent judges are taken to have said, of the last reading; None: they are asked."""
    holds: ExitStack = field(default_factory=ExitStack)
    """What lives as long as the source is in use."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.holds.close()

    @property
    def is_single(self) -> bool:
        """It is one record."""
        return self.kind != "run"

    @property
    def is_masked(self) -> bool:
        """Its records were written by a run, secrets masked: what judges them has to be, too."""
        return self.kind in ("run", "trial", "record")

    def subjects(self, case: Case | None = None, suite: str = "") -> Iterator[RecordSubject]:
        """In fixed order. A session is read as one of `case`, which it needs."""
        self.damaged.clear()
        return self.read(self, case, suite)


def open_source(target: str, *, workspace: Path | None, skill_dir: Path | None) -> RecordSource:
    """Use it in a ``with``. `workspace` and `skill_dir` are folders of a judge input.

    Raises UsageError and RunDirectoryError for what is none of these.
    """
    path = Path(target)
    if path.suffix == ".json" and path.is_file() and not (path.parent / RUN_FILE).is_file():
        from skillup.importers.judge_debug import InputPlaces, is_judge_input

        if is_judge_input(path):
            return input_source(path, InputPlaces(workspace, skill_dir))
    if workspace is not None or skill_dir is not None:
        raise UsageError(
            f"{target}: --workspace and --skill-dir are for judge-debug files of skill-up",
            hint="the records of skillup know their files themselves",
        )
    if path.is_dir():
        if (path / RUN_FILE).is_file():
            return _run(path)
        if (path / trials.RECORD_FILE).is_file():
            return _alone(path / trials.RECORD_FILE, "trial")
        if any(path.rglob("*.jsonl")):
            return RecordSource(path, "session", _of_sessions)
        raise UsageError(f"{target}: neither a run nor a trial, nor a session below", hint=_HINT)
    if path.suffix == ".json" and path.is_file():
        if (path.parent / RUN_FILE).is_file():
            return _run(path.parent)  # its run.json or its result.json
        return _alone(path, "record")
    return _by_name(target)


def _by_name(target: str) -> RecordSource:
    """A session, as it has always been; a name that is no session's may be a run's."""
    if target == LAST:
        return _run(run_path(target))
    try:
        return _session(target)
    except UsageError as error:
        if not means_a_run(target):
            both = error.message.replace("no session begins", "no run and no session begins", 1)
            runs = newest_runs().replace("the newest ones", "the newest runs")
            raise UsageError(both, hint=f"{error.hint}; {runs}") from None
    return _run(run_path(target))


def _run(path: Path) -> RecordSource:
    check_shape_of_run(RunDirectory.open(path).run_info(), path / RUN_FILE)
    not_needed, stopped = _left_out(path)
    planned = frozenset(_jobs_of(path)) - not_needed
    return RecordSource(
        path,
        "run",
        _of_run,
        run=path,
        planned=planned,
        not_needed=not_needed,
        stopped_by_failures=stopped == "max_fail",
    )


def _of_run(source: RecordSource, case: Case | None, suite: str) -> Iterator[RecordSubject]:
    del case, suite
    read = trial_reader(source)
    for job_id, directory in trials_of(source):
        subject = read(job_id, directory)
        if subject is not None:
            yield subject


def trials_of(source: RecordSource) -> Iterator[tuple[str, Path]]:
    """The trials of a run that have a record: job id and directory, in the order of its plan."""
    order = {job: place for place, job in enumerate(_jobs_of(source.path))}
    found = trials.directories_with_records(source.path / "trials")
    yield from sorted(found, key=lambda trial: order.get(trial[0], len(order)))


def _jobs_of(run: Path) -> list[str]:
    jobs = RunDirectory.open(run).run_info().get("jobs")
    return [job for job in jobs if isinstance(job, str)] if isinstance(jobs, list) else []


def _left_out(run: Path) -> tuple[frozenset[str], str | None]:
    """Trials that the run left out on purpose, and what stopped it; one that was killed has not
    said so yet.
    """
    try:
        result = RunDirectory.open(run).read_result()
    except RunDirectoryError:
        return frozenset(), None
    stopped = result.stopped.kind if result.stopped is not None else None
    return frozenset(result.not_needed), stopped


def trial_reader(source: RecordSource) -> Callable[[str, Path], RecordSubject | None]:
    """Reads trials of a run. A record that cannot be read is None, and noted in the source."""
    run = RunDirectory.open(source.path)
    read_file = run.blobs.read_state

    def read(job_id: str, directory: Path) -> RecordSubject | None:
        try:
            record = trials.load_record(directory / trials.RECORD_FILE, run.written(job_id))
        except trials.DamagedRecordError as error:
            source.damaged[job_id] = f"its record {error.what}"
            return None
        except trials.ForeignRecordError as error:
            source.damaged[job_id] = _foreign(error.version)
            return None
        return RecordSubject(job_id, record, read_file, directory / trials.GRADE_FILE)

    return read


def _foreign(version: str) -> str:
    """Of a record; what a file says of itself may be anything, and of any length."""
    form, _, number = version.partition("/")
    ours, _, last = RECORD_VERSION.partition("/")
    newer = form == ours and number.isdecimal() and int(number[:9]) > int(last)
    whose = "a newer skillup" if newer else "another version of skillup"
    return f"its record was written by {whose} ({shown_id(version)})"


def _alone(path: Path, kind: str) -> RecordSource:
    run = _run_of(path)
    return RecordSource(path, kind, _of_record, run=run)


def _run_of(path: Path) -> Path | None:
    """The run whose trial the record is."""
    above = path.resolve().parents
    found = (d.parent for d in above if d.name == "trials" and (d.parent / RUN_FILE).is_file())
    return next(found, None)


def _of_record(source: RecordSource, case: Case | None, suite: str) -> Iterator[RecordSubject]:
    del case, suite
    try:
        record = trials.load_record(source.path)
    except trials.DamagedRecordError:
        raise RunDirectoryError(
            f"{source.path} is no record of skillup, or damaged", hint=_HINT
        ) from None
    job_id = f"{record.case_id}/{record.engine.profile}/{record.variant}/{record.trial}"
    read_file: ReadFile = _no_files
    if source.run is not None:
        read_file = RunDirectory.open(source.run).blobs.read_state
        directories = trials.directories_with_records(source.run / "trials")
        here = source.path.resolve().parent
        job_id = next((job for job, place in directories if place.resolve() == here), job_id)
        if source.path.name == trials.RECORD_FILE:
            record = RunDirectory.open(source.run).read_record(job_id)
    yield RecordSubject(job_id, record, read_file, source.path.with_name(trials.GRADE_FILE))


def _no_files(state: FileState) -> bytes | None:
    del state
    raise CannotEvaluateError(
        "the record stands outside of its run, and only the run has the contents of files: "
        "judge it inside the run's directory"
    )


def _session(target: str) -> RecordSource:
    from skillup.sessions.index import (
        find_session,
        session_files,
        session_format,
        session_homes,
    )

    try:
        path = find_session(target, session_files(session_homes(os.environ)))
        session_format(path)  # before anything is said of cases that may be right
    except UsageError as error:
        raise UsageError(error.message, hint=_HINT) from None
    return RecordSource(path, "session", _of_session)


def _of_session(source: RecordSource, case: Case | None, suite: str) -> Iterator[RecordSubject]:
    yield _held_as(source.path, case, suite)


def _of_sessions(source: RecordSource, case: Case | None, suite: str) -> Iterator[RecordSubject]:
    """Every session below a folder, by path; the files of sub-agents belong to their session."""
    from skillup.sessions.readers import detect_format

    for path in sorted(source.path.rglob("*.jsonl")):
        if path.name.startswith("agent-") or not path.is_file():
            continue
        try:
            if detect_format(path) is None:
                continue  # another file of the agent's, such as its history of prompts
            yield _held_as(path, case, suite)
        except (UsageError, OSError) as error:
            if case is None:
                raise
            source.damaged[str(path.relative_to(source.path))] = str(error)


def _held_as(path: Path, case: Case | None, suite: str) -> RecordSubject:
    """The session in `path` as a trial of `case`, with an id that is the same each time."""
    from skillup.sessions.index import session_format
    from skillup.sessions.record import read_session, record_of_session

    if case is None:
        raise NO_CASE
    session = read_session(path, session_format(path))
    record = record_of_session(session, case, suite)
    name = (record.session_id or path.stem).replace("/", "_")
    job_id = f"{record.case_id}/{record.engine.profile}/{record.variant}/{name}"
    return RecordSubject(job_id, record, _no_files, None, record.notes)


# A judge-debug file of skill-up as what is judged: one execution, with the judge it names.


def input_source(path: Path, places: InputPlaces) -> RecordSource:
    """The file as a source; the contents of its workspace are kept as long as that is in use.

    Raises UsageError for a folder in `places` that is not there.
    """
    for option, folder in (("--workspace", places.workspace), ("--skill-dir", places.skill_dir)):
        if folder is not None and not folder.is_dir():
            raise UsageError(f"{option} {folder}: there is no such folder")
    source = RecordSource(path, "input", lambda source, *_: _read(source, blobs, places))
    room = tempfile.TemporaryDirectory(prefix="skillup-judge-", ignore_cleanup_errors=True)
    blobs = BlobStore(Path(source.holds.enter_context(room)))
    return source


def _read(source: RecordSource, blobs: BlobStore, places: InputPlaces) -> Iterator[RecordSubject]:
    given = read_judge_input(source.path, blobs, places)
    source.mock_results = given.mock_results
    record = given.record
    job_id = f"{record.case_id}/{record.engine.profile}/{record.variant}/{record.trial}"
    yield RecordSubject(job_id, record, blobs.read_state, None, given.notes)
