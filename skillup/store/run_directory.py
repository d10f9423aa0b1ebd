"""A run on disk. A finished trial's record is there whole, synced, or it is not there at all.

RUN/run.json                 what was asked for: plan, versions, options
RUN/events.jsonl             the journal
RUN/trials/<job>/            record.json, grading.json, raw/, files/; checkpoint.json until then
RUN/blobs/                   contents of workspace files, by their SHA-256
RUN/judge-answers/           what models answered to judges, so that the run can be judged offline
RUN/result.json              every grade
RUN/scratch                  a link to where trials work while they run
RUN/lock                     locked by the process that writes
"""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from pydantic import BaseModel, ValidationError

from skillup.errors import RunDirectoryError
from skillup.redaction.secrets import masking_bytes
from skillup.schema.grade import Grade
from skillup.schema.record import Checkpoint, Record
from skillup.store import trials
from skillup.store.files import (
    Journal,
    Mask,
    disk_errors,
    make_directory,
    no_mask,
    read_journal,
    read_regular,
    remove_temporary_files,
    set_aside,
    sync_directory,
    to_json,
    write_atomic,
)
from skillup.store.places import (
    JOURNAL_FILE,
    LOCK_FILE,
    RESULT_FILE,
    RUN_FILE,
    check_free,
    directory_of_job,
    job_of_directory,
    take_lock,
)
from skillup.store.scratch import Scratch
from skillup.store.trials import DamagedRecordError, TrialPlace
from skillup.workspace.snapshot import BlobStore

if TYPE_CHECKING:
    from skillup.schema.grade import RunResult


class _SuiteShape(BaseModel):
    path: str | None = None
    gates: dict[str, Any] | None = None
    cases: dict[str, Any] | None = None
    titles: dict[str, str | None] | None = None
    tags: dict[str, list[str]] | None = None


class _ProfileShape(BaseModel):
    api_key_env: str | None = None


class _RequestShape(BaseModel):
    directory: str | None = None
    paths: list[Any] | None = None


class RunShape(BaseModel):
    """What must be as it is in ``run.json``, where it is there."""

    run_id: str = ""
    started_at: str = ""
    jobs: list[str] | None = None
    hidden_variables: list[str] | None = None
    case_digests: dict[str, str] | None = None
    profiles: dict[str, _ProfileShape] | None = None
    suites: dict[str, _SuiteShape] | None = None
    references: dict[str, dict[str, str | None]] | None = None
    request: _RequestShape | None = None


class RunDirectory:
    """One run directory, open for reading, or by one process at a time for writing too.

    Methods may be called from several threads. Whatever the disk refuses is a RunDirectoryError.
    """

    def __init__(self, path: Path, lock: int | None, mask: Mask, event: str = "") -> None:
        self.path = path
        self.blobs = BlobStore(path / "blobs", None if mask is no_mask else masking_bytes(mask))
        self.judge_answers = path / "judge-answers"
        self._trials = path / "trials"
        self._mask = mask
        self._lock = lock
        self._scratch = Scratch(path / "scratch")
        self._journal = Journal(path / JOURNAL_FILE, mask) if lock is not None else None
        self._written: dict[tuple[str, str], set[str]] | None = None
        self._journal_size: int | None = 0
        self.set_aside: list[Path] = []
        """Records that were damaged, or not this run's own; as they are called now."""
        if self._journal is not None:
            self._journal.append(event, durable=True)
            self.written("")  # an agent may remove the journal

    @classmethod
    def create(
        cls,
        path: Path,
        run_info: Mapping[str, Any],
        *,
        mask: Mask = no_mask,
        beside: Collection[str] = (),
    ) -> Self:
        """Makes the directory and its ``run.json``, for writing.

        Raises RunDirectoryError as :func:`check_free`, or if another process writes there.
        """
        path = path.absolute()
        check_free(path, beside)
        make_directory(path)
        lock = take_lock(path / LOCK_FILE)
        try:
            check_free(path, beside)  # another process may have come and gone
            remove_temporary_files(path)
            write_atomic(path / RUN_FILE, to_json(run_info, mask, indent=2))
            return cls(path, lock, mask, "run_created")
        except BaseException:
            os.close(lock)
            raise

    @classmethod
    def open(cls, path: Path, *, writable: bool = False, mask: Mask = no_mask) -> Self:
        """Opens an existing run; ``writable`` to resume it or to grade it anew.

        Raises RunDirectoryError if there is no run, or if another process writes it; for writing
        also if its journal is gone, which alone knows the records that are the run's own.
        """
        path = path.absolute()
        if not (path / RUN_FILE).is_file():
            what = "is no run directory" if path.is_dir() else "does not exist"
            hint = "give the directory that holds run.json; runs are under .skillup/runs by default"
            raise RunDirectoryError(f"{path} {what}", hint=hint)
        if not writable:
            return cls(path, None, mask)
        lock = take_lock(path / LOCK_FILE)
        try:
            recorded = trials.directories_with_records(path / "trials")
            if not (path / JOURNAL_FILE).exists() and any(recorded):
                raise RunDirectoryError(
                    f"{path / JOURNAL_FILE} is missing: it knows which records are the run's own",
                    hint="put it back, or start a new run; `skillup judge` shows what is recorded",
                )
            remove_temporary_files(path)
            remove_temporary_files(path / "blobs")
            return cls(path, lock, mask, "run_reopened")
        except BaseException:
            os.close(lock)
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Lets go of the directory; may be called again."""
        if self._lock is not None and self._journal is not None:
            self._scratch.close()
            self._journal.close()
            os.close(self._lock)
            self._lock = None

    def run_info(self) -> dict[str, Any]:
        """What ``run.json`` says. Raises RunDirectoryError if that is damaged."""
        path = self.path / RUN_FILE
        try:
            with disk_errors("read", path):
                value: dict[str, Any] = json.loads(read_regular(path))
            RunShape.model_validate(value, strict=True)
        except (ValueError, RecursionError):  # of which pydantic's is one
            raise RunDirectoryError(f"{path} is damaged", hint="start the run anew") from None
        return value

    def write_run_info(self, run_info: Mapping[str, Any]) -> None:
        """Stores ``run.json``, in place of the one that is there."""
        self._writing()
        write_atomic(self.path / RUN_FILE, to_json(run_info, self._mask, indent=2))

    def journal(self, event: str, *, durable: bool = False, **fields: Any) -> None:
        """Adds an event to ``events.jsonl``; ``durable`` waits until it is on the disk."""
        self._writing().append(event, durable=durable, **fields)

    def events(self) -> Iterator[dict[str, Any]]:
        """The journal, in order."""
        return read_journal(self.path / JOURNAL_FILE)

    # Trials, from their beginning to their record.

    def trial_directory(self, job_id: str) -> Path:
        """``trials/<job>``: where the trial is or would be; nothing is made."""
        return self._trials / directory_of_job(job_id)

    def _made_directory(self, job_id: str) -> Path:
        """That, made if need be, and clean of what killed writers left."""
        self._writing()
        directory = self.trial_directory(job_id)
        make_directory(directory)
        remove_temporary_files(directory)
        if job_of_directory(directory_of_job(job_id)) is None:
            name = job_id.encode(errors="surrogatepass")
            write_atomic(directory / trials.JOB_ID_FILE, name)
        return directory

    def begin_trial(self, job_id: str) -> TrialPlace:
        """Makes the trial's directories, empty, and journals ``trial_started``.

        What an earlier, unfinished attempt left in ``raw`` and ``files`` is set aside
        (``raw.attempt-1``); its scratch is removed.
        """
        directory = self._made_directory(job_id)
        self._scratch.remove(job_id)
        scratch = self._scratch.directory(job_id)
        place = TrialPlace(directory / "raw", directory / "files", scratch)
        _make_fresh(place.raw)
        _make_fresh(place.files)
        _remove(directory / trials.CHECKPOINT_FILE)
        self.journal("trial_started", job=job_id)
        return place

    def reopen_trial(self, job_id: str) -> TrialPlace | None:
        """The directories of an unfinished trial, to go on with it; None if its scratch is gone."""
        scratch = self._scratch.existing(job_id)
        if scratch is None:
            return None
        directory = self._made_directory(job_id)
        place = TrialPlace(directory / "raw", directory / "files", scratch)
        _make_fresh(place.files)
        make_directory(place.raw)
        return place

    def remove_scratch(self, job_id: str) -> bool:
        """Removes the trial's scratch; False if something of it could not be removed."""
        self._writing()
        return self._scratch.remove(job_id)

    def write_checkpoint(self, job_id: str, checkpoint: Checkpoint) -> None:
        """Stores ``checkpoint.json``, the trial as far as its last whole turn, for a resumed run.

        Not at all if a variable of it has a secret: what is masked could not be sent any more.
        """
        path = self._made_directory(job_id) / trials.CHECKPOINT_FILE
        if any(self._mask(value) != value for value in checkpoint.variables.values()):
            _remove(path)
        else:
            write_atomic(path, to_json(checkpoint, self._mask, indent=None), durable=False)

    def read_checkpoint(self, job_id: str) -> Checkpoint | None:
        """How far an unfinished trial has come; None: nothing is known that could be used."""
        return trials.load_checkpoint(self.trial_directory(job_id) / trials.CHECKPOINT_FILE)

    def write_record(self, job_id: str, record: Record) -> None:
        """Stores a finished trial for good, then journals ``trial_finished``.

        When this returns, record and blobs are on the disk. Raises RunDirectoryError if the trial
        has a record: records are never changed.
        """
        path = self._made_directory(job_id) / trials.RECORD_FILE
        if self.finished_record(job_id) is not None:
            raise RunDirectoryError(
                f"{path} exists already: a trial has one record",
                hint="if two case ids differ in upper and lower case only, rename one of them",
            )
        self._set_result_aside()
        self._place_record(path, record, job_id)
        error = record.first_error()
        self.journal("trial_finished", job=job_id, error=error.kind if error else None)
        _remove(path.with_name(trials.CHECKPOINT_FILE))

    def write_attempt(self, job_id: str, record: Record) -> None:
        """Keeps the record of an attempt that is retried, as ``attempt-<n>.json``.

        What an earlier start has kept under that name becomes ``attempt-<n>.json.earlier-1``.
        """
        self._place_record(self._free_attempt(self._made_directory(job_id), record), record)
        error = record.first_error()
        self.journal(
            "trial_retried", job=job_id, attempt=record.attempt, error=error.kind if error else None
        )

    def write_unused(self, job_id: str, record: Record) -> None:
        """Keeps, beside the attempts, what was recorded of a trial that begins anew."""
        directory = self._made_directory(job_id)
        number = len([*directory.glob("attempt-*.unused-*")]) + 1
        self._place_record(directory / f"attempt-{record.attempt}.json.unused-{number}", record)

    @staticmethod
    def _free_attempt(directory: Path, record: Record) -> Path:
        path = directory / f"attempt-{record.attempt}.json"
        if path.exists():
            set_aside(path, "earlier")
        return path

    def take_back(self, job_id: str) -> None:
        """A finished trial is to be run again: its record becomes an attempt, its grade goes.

        Whenever this is killed, the trial is finished as before, or unfinished with its attempt.
        """
        self._set_result_aside()
        directory, kept = self.trial_directory(job_id), self.read_record(job_id)
        # The grade before the record: it must never stand beside the one that comes next. A
        # checkpoint is left where skillup was killed right after the record was written.
        for name in (trials.CHECKPOINT_FILE, trials.GRADE_FILE):
            _remove(directory / name)
        target = self._free_attempt(directory, kept)
        with disk_errors("write", target):
            sync_directory(directory)
            (directory / trials.RECORD_FILE).rename(target)
            sync_directory(directory)

    def attempts(self, job_id: str) -> Iterator[Record]:
        """What :meth:`write_attempt` and :meth:`take_back` have kept; damaged ones are left out."""
        for path in sorted(self.trial_directory(job_id).glob("attempt-*.json*")):
            with suppress(DamagedRecordError):
                yield trials.load_record(path)

    def _set_result_aside(self) -> None:
        """That of an earlier start says other things of the trial that ends or begins now."""
        self._writing()
        if (self.path / RESULT_FILE).exists():
            set_aside(self.path / RESULT_FILE, "earlier")

    def sync_blobs(self) -> None:
        """Waits until all blobs are on the disk: a record that names them can follow."""
        with disk_errors("write", self.blobs.directory):
            self.blobs.sync()

    def _place_record(self, path: Path, record: Record, job_id: str | None = None) -> None:
        self.sync_blobs()
        data = to_json(record, self._mask, indent=None)
        if job_id is not None:
            self._note_written("trial_recorded", job_id, data, durable=True)
        write_atomic(path, data)

    def _note_written(self, event: str, job_id: str, data: bytes, *, durable: bool) -> None:
        """Before a file is placed, so that one which the journal does not know is not ours."""
        digest = sha256(data).hexdigest()
        if self._written is not None:
            self._written.setdefault((event, job_id), set()).add(digest)
        self.journal(event, durable=durable, job=job_id, sha256=digest)

    def written(self, job_id: str, event: str = "trial_recorded") -> Collection[str] | None:
        """The SHA-256 of the records that this run has written for the job; `trial_graded`: grades.

        None: nobody knows, for the journal is gone.
        """
        if self._journal is None:
            journal = self.path / JOURNAL_FILE
            size = journal.stat().st_size if journal.exists() else None
            if size is None:
                return None
            if size != self._journal_size:  # whoever only reads a run may see it grow
                self._written, self._journal_size = None, size
        if self._written is None:
            self._written = {}
            for entry in self.events():
                if entry.get("event") in ("trial_recorded", "trial_graded"):
                    key = str(entry["event"]), str(entry.get("job"))
                    self._written.setdefault(key, set()).add(str(entry.get("sha256")))
        return self._written.get((event, job_id), ())

    def read_record(self, job_id: str) -> Record:
        """The trial's record. Raises RunDirectoryError if there is none, or a damaged one."""
        path = self.trial_directory(job_id) / trials.RECORD_FILE
        try:
            return trials.load_record(path, self.written(job_id))
        except DamagedRecordError as error:
            hint = "run the trial again with skillup run --resume"
            raise RunDirectoryError(f"{path} {error.what}", hint=hint) from None

    def finished_jobs(self) -> set[str]:
        """The jobs that have a whole record; see :meth:`finished_record`."""
        recorded = (job_id for job_id, _ in trials.directories_with_records(self._trials))
        return {job_id for job_id in recorded if self.finished_record(job_id) is not None}

    def finished_record(self, job_id: str) -> Record | None:
        """That of one trial; None: it is not finished.

        If the run is open for writing, a damaged record is set aside as
        ``record.json.damaged-<n>``, so that the trial can be run again.
        """
        path = self.trial_directory(job_id) / trials.RECORD_FILE
        if not path.exists():
            return None
        try:
            return trials.load_record(path, self.written(job_id))
        except DamagedRecordError:
            if self._journal is not None:
                moved = set_aside(path, "damaged")
                self.set_aside.append(moved)
                self.journal("record_set_aside", job=job_id, file=moved.name)
            return None

    def write_grade(self, job_id: str, grade: Grade) -> None:
        """Stores ``grading.json`` beside the record, in place of an older one."""
        path = self._made_directory(job_id) / trials.GRADE_FILE
        data = to_json(grade, self._mask, indent=2)
        self._note_written("trial_graded", job_id, data, durable=False)
        write_atomic(path, data, durable=False)  # it can be derived again from the record

    def read_grade(self, job_id: str) -> Grade | None:
        """The trial's grade; None if it has none that can be read and is this run's own."""
        path = self.trial_directory(job_id) / trials.GRADE_FILE
        with disk_errors("read", path):
            return trials.load_grade(path, self.written(job_id, "trial_graded"))

    def write_result(self, result: RunResult) -> None:
        """Stores ``result.json``, in place of an older one, and journals ``result_written``."""
        self._writing()
        write_atomic(self.path / RESULT_FILE, to_json(result, self._mask, indent=2))
        self.journal("result_written", durable=True, finished=result.finished)

    def read_result(self) -> RunResult:
        """``result.json``. Raises RunDirectoryError if the run has none that can be read."""
        path = self.path / RESULT_FILE
        try:
            with disk_errors("read", path):
                from skillup.schema.grade import RunResult

                return RunResult.model_validate_json(read_regular(path))
        except ValidationError:
            hint = "`skillup run --resume` writes it anew, from the trials' grades"
            raise RunDirectoryError(f"{path} is damaged", hint=hint) from None

    def _writing(self) -> Journal:
        if self._journal is None:
            raise RuntimeError(f"{self.path} is open for reading only; open it with writable=True")
        return self._journal


def _make_fresh(directory: Path) -> None:
    """Makes an empty directory; one with content (an earlier attempt's) is set aside."""
    with disk_errors("make", directory):
        if directory.is_dir() and any(directory.iterdir()):
            set_aside(directory, "attempt")
        directory.mkdir(parents=True, exist_ok=True)


def _remove(path: Path) -> None:
    with disk_errors("remove", path):
        path.unlink(missing_ok=True)
