"""A run on disk. A finished trial's record is there whole, synced, or it is not there at all.

RUN/run.sqlite               plan, journal, records, grades, raw streams, contents of files, answers
RUN/result.json              every grade
RUN/scratch                  a link to where trials work while they run
RUN/lock                     locked by the process that writes
"""

from __future__ import annotations

import hashlib
import os
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, suppress
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self, TypeAlias

import anyio.to_thread

from skillup.dataclass import frozen
from skillup.errors import RunDirectoryError
from skillup.schema.base import Model
from skillup.schema.grade import Grade
from skillup.schema.record import Checkpoint, FileState, Record, utc_now
from skillup.store.contents import Streams, keep_artifact, stream_of, whole_blob
from skillup.store.database import Database, Statement, Unpacked, create
from skillup.store.files import (
    Mask,
    disk_errors,
    make_directory,
    masked_json,
    no_mask,
    pack,
    to_json,
    write_atomic,
)
from skillup.store.places import LOCK_FILE, RESULT_FILE, RUN_FILE, check_free, take_lock
from skillup.store.scratch import Scratch
from skillup.store.stored_run import ORIGINAL, StoredRun, StoredTrial, result_json

if TYPE_CHECKING:
    from skillup.schema.grade import RunResult

_MANY_FILES = 100
"""Longer lists of what was there before turn 1 are stored once, and not in each record."""
_FILES_AT_ONCE = 500
_EVENT = "INSERT INTO events (json) VALUES (?)"
_ASIDE = "UPDATE attempts SET checkpoint = NULL, state = 'unused' WHERE job = ? AND state = 'begun'"


@frozen
class TrialPlace:
    """What belongs to one attempt at a trial."""

    streams: Streams  # Of its engine
    keep_artifact: Callable[[str, bytes], None]
    """A file of the workspace that the trial collects, by its path."""
    scratch: Path
    """For workspace and home; a real path, removed when the trial has finished."""


StoredForm: TypeAlias = tuple[bytes, bytes | None, Record | None]
"""JSON; what a list of files that is not in it is stored by; the record if secrets were masked."""


class RunDirectory(StoredRun, AbstractContextManager["RunDirectory"]):
    """One run directory, open for reading, or by one process at a time for writing too.

    What is written is on the disk after :meth:`committed`.
    """

    def __init__(self, path: Path, database: Database, lock: int | None, mask: Mask) -> None:
        super().__init__(path, database, mask)
        self._mask = mask
        self._lock = lock
        self._scratch = Scratch(path / "scratch")
        self._attempts: dict[str, int] = {}
        """Of trials that have not finished: the attempt that is under way."""
        self._last_attempt = 0
        self._has_result = (path / RESULT_FILE).exists()
        self._checkpoints: set[str] = set()  # Jobs that may have one
        self._begun: set[str] = set()
        """Jobs of which there is any attempt, but those that this process has finished."""
        self._file_lists: dict[str, tuple[object, bytes | None]] = {}
        """Of trials that this process runs: a list of files, and what it is stored by."""
        self._stored_lists: set[bytes] = set()

    @classmethod
    def create(cls, path: Path, run_info: Mapping[str, Any], *, mask: Mask = no_mask) -> Self:
        """Makes it, for writing. Raises RunDirectoryError as `check_free` and `take_lock` do."""
        path = path.absolute()
        check_free(path)
        make_directory(path)
        with ExitStack() as undo:
            undo.callback(os.close, lock := take_lock(path / LOCK_FILE))
            check_free(path)  # another process may have come and gone
            create(path / RUN_FILE, _write_info(run_info, mask))
            made = cls(path, Database(path / RUN_FILE, writable=True), lock, mask)
            made.journal("run_created")
            made.sync()
            undo.pop_all()
        return made

    @classmethod
    def open(cls, path: Path, *, writable: bool = False, mask: Mask = no_mask) -> Self:
        """Opens an existing run; ``writable`` to resume it or to grade it anew.

        Raises RunDirectoryError if there is no run, or if another process writes it.
        """
        path = path.absolute()
        if not (path / RUN_FILE).is_file():
            what = "is no run directory" if path.is_dir() else "does not exist"
            hint = f"give the directory that holds {RUN_FILE}; runs are under .skillup/runs"
            raise RunDirectoryError(f"{path} {what}", hint=f"{hint} by default")
        if not writable:
            return cls(path, Database(path / RUN_FILE), None, mask)
        with ExitStack() as undo:
            undo.callback(os.close, lock := take_lock(path / LOCK_FILE))
            made = cls(path, Database(path / RUN_FILE, writable=True), lock, mask)
            made.database.check_unchanged()
            sql = "SELECT id, job, state, checkpoint IS NOT NULL, scratch FROM attempts ORDER BY id"
            owners: dict[str, str | None] = {}
            for attempt, job, state, has_checkpoint, scratch in made.database.rows(sql):
                made._last_attempt = attempt
                made._begun.add(job)
                if scratch is not None:
                    owners[scratch] = job if state == "begun" else None
                if state == "begun":
                    made._attempts[job] = attempt
                if has_checkpoint:
                    made._checkpoints.add(job)
            made._scratch.take_over(owners)
            made.journal("run_reopened")
            undo.pop_all()
        return made

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Commits what waits, and lets go of the directory; may be called again."""
        try:
            self.database.close()
        finally:
            if self._lock is not None:
                self._scratch.close()
                os.close(self._lock)
                self._lock = None

    async def committed(self) -> None:
        """Waits until all that was written so far is on the disk."""
        await self.database.committed()

    def sync(self) -> None:
        """The same, for those who may block."""
        self.database.sync()

    # What the run knows of itself, and its journal.

    def write_run_info(self, run_info: Mapping[str, Any]) -> None:
        self.database.put(_write_info(run_info, self._mask))

    def write_used(self, used: Mapping[str, Any]) -> None:
        """Stores what the run uses (`app/provenance.py`), which is found out while it goes on."""
        data = Unpacked(to_json(used, self._mask, indent=None))
        self.database.execute("INSERT OR REPLACE INTO run VALUES ('used', ?)", data)

    def journal(self, event: str, **fields: Any) -> None:
        """Adds ``{"time": now, "event": event, **fields}``."""
        self.database.execute(_EVENT, self._event(event, **fields))

    def _event(self, event: str, **fields: Any) -> str:
        entry = {"time": utc_now(), "event": event, **fields}
        return masked_json(entry, self._mask)[0].decode()

    # Trials, from their beginning to their record.

    def begin_trial(self, job_id: str, *, unique: bool = False) -> TrialPlace:
        """A new attempt, in an empty scratch directory; `unique`: with a path of its own.

        What an earlier one left that did not finish stays, unused.
        """
        if self.was_begun(job_id):
            self.database.execute(_ASIDE, job_id)
        scratch = self._scratch.directory(job_id, unique=unique)
        event = self._event("trial_started", job=job_id)
        attempt = self._new_attempt(job_id, event, scratch.name)
        self._checkpoints.discard(job_id)
        return self._place(attempt, scratch, is_new=True)

    def _new_attempt(self, job_id: str, event: str | None = None, place: str | None = None) -> int:
        self._last_attempt += 1
        attempt = self._attempts[job_id] = self._last_attempt
        self._begun.add(job_id)

        def begin(connection: sqlite3.Connection) -> None:
            connection.execute("INSERT OR IGNORE INTO jobs (name) VALUES (?)", (job_id,))
            sql = "INSERT INTO attempts (id, job, state, scratch) VALUES (?, ?, 'begun', ?)"
            connection.execute(sql, (attempt, job_id, place))
            if event is not None:
                connection.execute(_EVENT, (event,))

        self.database.put(begin)  # as one: all that is written for every trial is
        return attempt

    def reopen_trial(self, job_id: str) -> TrialPlace | None:
        """The place of an unfinished trial, to go on with it; None if its scratch is gone."""
        scratch, attempt = self._scratch.existing(job_id), self._attempts.get(job_id)
        if scratch is None or attempt is None:
            return None
        self.database.execute("DELETE FROM files WHERE attempt = ?", attempt)
        return self._place(attempt, scratch)

    def _place(self, attempt: int, scratch: Path, *, is_new: bool = False) -> TrialPlace:
        keep = partial(keep_artifact, self.database, self.blobs, attempt)
        return TrialPlace(Streams(self.database, attempt, is_new=is_new), keep, scratch)

    def remove_scratch(self, job_id: str) -> bool:
        """Removes the trial's scratch; False if something of it could not be removed."""
        return self._scratch.remove(job_id)

    async def remove_scratch_beside(self, job_id: str) -> None:
        """The same, now or with others; in a thread, and to its end even if this is cancelled."""
        work = self._scratch.set_aside(job_id)
        if work is not None:
            with anyio.CancelScope(shield=True):
                await anyio.to_thread.run_sync(work)

    def stored_form(self, job_id: str, value: Record | Checkpoint) -> StoredForm:
        """Of a large workspace it is made in a thread."""
        is_record = isinstance(value, Record)
        record = value if isinstance(value, Record) else value.record
        files, key = record.initial_files or {}, None
        if len(files) > _MANY_FILES:
            known, key = self._file_lists.get(job_id, (None, None))
            if known is not files and (listed := _json_of_files(files, self._mask)) is not None:
                key = hashlib.sha256(listed).digest()
                if key not in self._stored_lists:
                    sql = "INSERT OR IGNORE INTO file_lists VALUES (?, ?)"
                    self.database.execute(sql, key, Unpacked(listed))
                    self._stored_lists.add(key)  # not before: what refers to it comes after it
                self._file_lists[job_id] = files, key
        listed_in: Any = {"initial_files"} if is_record else {"record": {"initial_files"}}
        data, masked = masked_json(value, self._mask, exclude=listed_in if key else None)
        whole = masked_json(record, self._mask)[0] if masked and is_record else None
        return data, key, Record.model_validate_json(whole) if whole else None

    def write_checkpoint(self, job_id: str, checkpoint: Checkpoint) -> None:
        """Stores the trial as far as its last whole turn, for a resumed run.

        Not at all if a variable of it has a secret: what is masked could not be sent any more.
        """
        secret = any(self._mask(value) != value for value in checkpoint.variables.values())
        data, files, _ = (b"", None, None) if secret else self.stored_form(job_id, checkpoint)
        sql = (
            "UPDATE attempts SET checkpoint = ?, initial_files = ?"
            " WHERE job = ? AND state = 'begun'"
        )
        self._checkpoints.add(job_id)
        self.database.execute(sql, Unpacked(data), files, job_id)

    def was_begun(self, job_id: str) -> bool:
        """Whether there is any attempt at the trial, of an earlier start or unfinished."""
        return job_id in self._begun

    def read_checkpoint(self, job_id: str) -> Checkpoint | None:
        if self.database.writable and job_id not in self._checkpoints:
            return None
        return super().read_checkpoint(job_id)

    def write_record(
        self,
        job_id: str,
        record: Record,
        made: StoredForm | None = None,
        *,
        state: Literal["finished", "retried", "unused"] = "finished",
    ) -> Record:
        """Stores the record of the attempt that is under way; returns it as stored, masked.

        `state`: "retried" where the trial is tried again, "unused" where it begins anew. `made`: by
        :meth:`stored_form`. Raises RunDirectoryError, here or later, if the trial has a record
        already: it is never changed.
        """
        if state == "finished":
            self._set_result_aside()
        data, files, masked = made or self.stored_form(job_id, record)
        self._file_lists.pop(job_id, None)
        attempt = self._attempts.get(job_id) or self._new_attempt(job_id)
        del self._attempts[job_id]
        if state == "finished":
            self._begun.discard(job_id)
        self._checkpoints.discard(job_id)
        sql = (
            "UPDATE attempts SET state = ?, record = ?, initial_files = ?, checkpoint = NULL"
            " WHERE id = ?"
        )
        event: str | None = None
        if state != "unused":
            about = {"attempt": record.attempt} if state == "retried" else {}
            error = record.first_error()
            kind = error and error.kind
            event = self._event(f"trial_{state}", job=job_id, **about, error=kind)

        def write(connection: sqlite3.Connection) -> None:
            connection.execute(sql, (state, pack(data), files, attempt))
            if event is not None:
                connection.execute(_EVENT, (event,))

        self.database.put(write, len(data))
        return masked or record

    def take_back(self, job_id: str) -> None:
        """A finished trial is to be run again: its record becomes an attempt, its grade goes.

        Whenever this is killed, the trial is finished as before, or unfinished with its attempt.
        """
        self._set_result_aside()
        self._begun.add(job_id)
        self.database.execute(
            "UPDATE attempts SET state = 'retried', grade = NULL, checkpoint = NULL"
            " WHERE job = ? AND state = 'finished'",
            job_id,
        )

    def write_grade(self, job_id: str, grade: Grade) -> Grade:
        """That of a finished trial, in place of an older one; returns it as stored, masked."""
        data, masked = masked_json(grade, self._mask)
        sql = (
            "UPDATE attempts SET grade = ?, graded = graded + 1"
            " WHERE job = ? AND state = 'finished'"
        )
        self.database.execute(sql, Unpacked(data), job_id)
        return Grade.model_validate_json(data) if masked else grade

    def write_judgement(
        self, name: str, grades: Mapping[str, Grade], by: Mapping[str, Any]
    ) -> None:
        """Stores grades by job beside those of the run, whole or not at all."""
        sql = (
            "INSERT INTO judgements SELECT ?, id, ? FROM attempts"
            " WHERE job = ? AND state = 'finished'"
        )
        rows = [(name, pack(masked_json(g, self._mask)[0]), job) for job, g in grades.items()]
        self.database.put(lambda file: file.executemany(sql, rows), sum(len(r[1]) for r in rows))
        self.journal("judgement_written", name=name, **by)
        self.sync()

    def promote(self, name: str) -> None:
        """The judgement's grades become the run's; the first ones stay as a judgement, too."""
        info = self.run_info()
        info.pop("used", None)
        written = (e for e in self.events() if e.get("event") == "judgement_written")
        by = next((e for e in written if e.get("name") == name), {"name": name})
        info["graded_by"] = None if name == ORIGINAL else by

        def promote(connection: sqlite3.Connection) -> None:
            first = (
                "INSERT OR IGNORE INTO judgements SELECT ?, id, grade FROM attempts"
                " WHERE state = 'finished' AND grade IS NOT NULL"
            )
            connection.execute(first, (ORIGINAL,))
            now = (
                "UPDATE attempts SET graded = graded + 1, grade = (SELECT j.grade FROM judgements j"
                " WHERE j.name = ? AND j.attempt = id) WHERE state = 'finished'"
            )
            connection.execute(now, (name,))
            _write_info(info, self._mask)(connection)

        self._set_result_aside()
        self.database.put(promote)
        self.journal("judgement_promoted", name=name)

    # Trials of other runs: shards, and what workers of a cluster ran.

    def take_blobs(self, other: StoredRun) -> dict[bytes, bytes]:
        """Adds contents of files that `other` has, masked by this run's mask; damaged ones as they
        are. Returns the SHA-256, in hex, that changed by that: old → new.
        """
        renamed: dict[bytes, bytes] = {}
        for key, data in other.database.each("SELECT sha256, data FROM blobs", many=10):
            content = whole_blob(key, data)
            if content is None:
                self.database.execute("INSERT OR IGNORE INTO blobs VALUES (?, ?)", key, data)
            elif (sha := self.blobs.put(content)) != key.hex():
                renamed[key.hex().encode()] = sha.encode()
        return renamed

    def take_attempts(
        self, other: StoredRun, job_id: str, renamed: Mapping[bytes, bytes]
    ) -> Iterator[tuple[str, StoredTrial]]:
        """Each attempt at a trial that `other` has, with its state, in order.

        Its streams and files are those of the attempt that is under way here, when it is yielded:
        then its record is to be written.
        """
        insert = self.database.execute
        insert(_ASIDE, job_id)
        for state, found in other.all_attempts(job_id):
            attempt = self._new_attempt(job_id)
            sql = "SELECT DISTINCT name FROM streams WHERE attempt = ?"
            for (name,) in other.database.rows(sql, found.attempt):
                with suppress(ValueError):
                    # Whole, for a secret may stand on both sides of a part's end.
                    data = b"".join(stream_of(other.database, found.attempt, name))
                    masked = pack(self.blobs.masked(data))
                    insert("INSERT INTO streams VALUES (?, ?, 0, ?)", attempt, name, masked)
            sql = "SELECT path, sha256 FROM files WHERE attempt = ?"
            for path, key in other.database.rows(sql, found.attempt):
                sha = renamed.get(key.hex().encode(), key.hex().encode()).decode()
                row = attempt, self._mask(path), bytes.fromhex(sha)
                insert("INSERT OR REPLACE INTO files VALUES (?, ?, ?)", *row)
            yield state, found

    def write_stored(self, state: str, found: StoredTrial) -> None:
        """Writes an attempt of :meth:`take_attempts` as it is."""
        record, grade = found.record_json, found.grade_json
        sql = "UPDATE attempts SET state = ?, record = ?, grade = ?, graded = ? WHERE id = ?"
        attempt = self._attempts.pop(found.job_id)
        packed = (pack(data) if data else None for data in (record, grade))
        self.database.execute(sql, state, *packed, grade is not None, attempt)

    # The result.

    def _set_result_aside(self) -> None:
        """That of an earlier start says other things of the trial that ends or begins now."""
        if self._has_result:
            self._has_result = False
            result = self.path / RESULT_FILE
            with disk_errors("set aside", result), suppress(FileNotFoundError):
                result.rename(self.path / f"{RESULT_FILE}.earlier")

    def write_result(self, result: RunResult) -> None:
        """Stores ``result.json``, in place of an older one, and journals ``result_written``.

        Not before all that it says is on the disk, and no other program has written there.
        """
        self.sync()
        self.database.execute("SELECT 1")  # for who wrote there is looked for in a new transaction
        self.sync()
        write_atomic(self.path / RESULT_FILE, result_json(result, self._mask))
        self.journal("result_written", finished=result.finished)
        self.sync()


def _write_info(run_info: Mapping[str, Any], mask: Mask) -> Statement:
    about = {name: value for name, value in run_info.items() if name != "jobs"}
    data, jobs = to_json(about, mask, indent=None), list(run_info.get("jobs") or ())

    def write(connection: sqlite3.Connection) -> None:
        started = str(run_info.get("started_at", "")).encode()
        for row in (("info", pack(data)), ("started_at", started)):
            connection.execute("INSERT OR REPLACE INTO run VALUES (?, ?)", row)
        connection.execute("UPDATE jobs SET planned = 0 WHERE planned > 0")
        sql = (
            "INSERT INTO jobs (name, planned) VALUES (?, ?)"
            " ON CONFLICT (name) DO UPDATE SET planned = excluded.planned"
        )
        connection.executemany(sql, ((job, n) for n, job in enumerate(jobs, start=1)))

    return write


class _Files(Model):
    files: dict[str, FileState]


def _json_of_files(files: Mapping[str, FileState], mask: Mask) -> bytes | None:
    """As in a record; None: there is a secret in it.

    Piece by piece: while one is made, no other thread of this process goes on.
    """
    pieces: list[bytes] = []
    items = iter(files.items())
    while piece := dict(islice(items, _FILES_AT_ONCE)):
        text, masked = masked_json(_Files(files=piece), mask)
        if masked:
            return None
        pieces.append(text.removeprefix(b'{"files":{')[:-2])
    return b"{" + b",".join(pieces) + b"}"
