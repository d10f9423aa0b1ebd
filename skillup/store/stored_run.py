"""A run on disk, as it is read: also while another process writes it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ValidationError

from skillup.dataclass import frozen
from skillup.errors import RunDirectoryError
from skillup.redaction.secrets import is_absent, masked_bytes
from skillup.schema.grade import Grade
from skillup.schema.line import TrialLine
from skillup.schema.record import CHECKPOINT_VERSION, RECORD_VERSION, Checkpoint, Record
from skillup.store.contents import TURN_OF_STREAM, StoredAnswers, StoredBlobs, stream_of
from skillup.store.database import Database
from skillup.store.files import (
    Mask,
    disk_errors,
    no_mask,
    open_regular,
    read_regular,
    to_json,
    unpack,
)
from skillup.store.places import RESULT_FILE

if TYPE_CHECKING:
    from skillup.schema.grade import RunResult

ORIGINAL = "original"  # The judgement that holds the grades of the run itself, once replaced
_BEFORE_FILES = f'"schema_version":"{RECORD_VERSION}"'.encode()
_AT_ONCE = 20  # Trials, by one query
ReadFile = Callable[[], Iterator[bytes]]
"""The content of a file, part by part. Raises ValueError for a damaged one."""


@frozen
class StoredTrial:
    """A finished trial as it was stored; see :meth:`record` and :meth:`grade`."""

    job_id: str
    attempt: int
    record_json: bytes
    grade_json: bytes | None
    where: str
    """For messages."""

    def record(self) -> Record:
        """Raises RunDirectoryError if it is damaged."""
        return parsed_record(self.record_json, self.where)

    def grade(self, known: Grade | None = None) -> Grade | None:
        """`known` itself, if it is the same. None: it has none that is whole, and can be derived
        again.
        """
        data = self.grade_json
        if known is not None and data == known.model_dump_json().encode():
            return known
        with suppress(ValidationError):
            return None if data is None else Grade.model_validate_json(data)
        return None


class StoredRun:
    """What a run directory holds. Whatever the disk refuses is a RunDirectoryError.

    Methods may be called from several threads.
    """

    def __init__(self, path: Path, database: Database, mask: Mask = no_mask) -> None:
        self.path = path
        self.answers = StoredAnswers(database, mask)
        self.blobs = StoredBlobs(database, None if mask is no_mask else partial(masked_bytes, mask))
        self.database = database

    def run_info(self, *, jobs: bool = True) -> dict[str, Any]:
        """The plan, its `jobs` too, versions and options. Raises RunDirectoryError if they are
        damaged.
        """
        try:
            data = self.database.value("SELECT json FROM run WHERE name = 'info'")
            value: dict[str, Any] = {**json.loads(unpack(data or b""))}
            if used := self.database.value("SELECT json FROM run WHERE name = 'used'"):
                value["used"] = json.loads(unpack(used))
            if jobs:
                sql = "SELECT name FROM jobs WHERE planned > 0 ORDER BY planned"
                value["jobs"] = [name for (name,) in self.database.rows(sql)]
        except (TypeError, ValueError, RecursionError):
            where = f"what {self.database.path} says of the run"
            raise RunDirectoryError(f"{where} is damaged", hint="start the run anew") from None
        return value

    def events(self) -> Iterator[dict[str, Any]]:
        """The journal, in order."""
        for (line,) in self.database.each("SELECT json FROM events ORDER BY id", many=1000):
            with suppress(ValueError, TypeError, RecursionError):
                event = json.loads(line)
                if isinstance(event, dict) and isinstance(event.get("job", ""), str):
                    yield event

    def read_checkpoint(self, job_id: str) -> Checkpoint | None:
        """How far an unfinished trial has come; None: nothing is known that could be used."""
        sql = (
            "SELECT checkpoint, initial_files FROM attempts"
            " WHERE job = ? AND state = 'begun' ORDER BY id DESC"
        )
        data, files = next(iter(self.database.rows(sql, job_id)), (None, None))
        with suppress(ValidationError):  # it is damaged, or there is none
            found = Checkpoint.model_validate_json(self._whole(data, files))
            return found if found.schema_version == CHECKPOINT_VERSION else None
        return None

    def _whole(self, data: bytes | None, files: bytes | None) -> bytes:
        """The JSON of a record or checkpoint with its list of files; empty if that is damaged."""
        text = _json(data) or b""
        if files is None:
            return text
        sql = "SELECT json FROM file_lists WHERE sha256 = ?"
        listed = _json(self.database.committed_rows(sql, files)[0][0])
        beside = _BEFORE_FILES + b',"initial_files":' + (listed or b"")
        return text.replace(_BEFORE_FILES, beside, 1) if listed else b""

    def finished_jobs(self) -> set[str]:
        """The jobs that have a record."""
        sql = "SELECT job FROM attempts WHERE state = 'finished'"
        return {name for (name,) in self.database.rows(sql)}

    def ended(self) -> dict[str, tuple[int, int]]:
        """By job, of those that have a record: its attempt, and how often it was graded."""
        sql = "SELECT job, id, graded FROM attempts WHERE state = 'finished'"
        return {job: (attempt, graded) for job, attempt, graded in self.database.rows(sql)}

    def progress_stamp(self) -> tuple[Any, ...]:
        """Differs when a trial or a turn of it has begun or ended, for each grade and event."""
        sql = (
            "SELECT (SELECT max(id) FROM events), (SELECT count(*) FROM streams WHERE part = 0),"
            " (SELECT sum(length(checkpoint)) FROM attempts WHERE state = 'begun'),"
            " (SELECT sum(graded) FROM attempts)"
        )
        return self.database.rows(sql)[0]

    def turn_under_way(self, job_id: str) -> int:
        """The turn that a running trial is at, by its raw streams; 0: none yet."""
        sql = (
            f"SELECT max({TURN_OF_STREAM}) FROM streams WHERE attempt ="  # noqa: S608 - ours
            " (SELECT max(id) FROM attempts WHERE job = ?)"
        )
        return self.database.value(sql, job_id) or 0

    def close(self) -> None:
        """Lets go of the run's file."""
        self.database.close()

    def begun_jobs(self) -> set[str]:
        """The jobs of which there is any attempt."""
        return {job for (job,) in self.database.rows("SELECT job FROM attempts")}

    def finished(
        self, jobs: Sequence[str] | None = None, judgement: str | None = None
    ) -> Iterator[StoredTrial]:
        """The finished trials (of `jobs`), in the order of the plan, a few at a time in memory.

        With a `judgement`, its grades in place of the run's.
        """
        grade, given = "grade", list[str]()
        if judgement is not None:
            grade = "(SELECT j.grade FROM judgements j WHERE j.name = ? AND j.attempt = id)"
            given = [judgement]
        if jobs is None:  # by their names first: SQLite sorts what it selects in temporary files
            order = "SELECT name FROM jobs ORDER BY planned = 0, planned, name"
            jobs = [name for (name,) in self.database.rows(order)]
        for start in range(0, len(jobs), _AT_ONCE):
            some = jobs[start : start + _AT_ONCE]
            where = f"job IN ({', '.join('?' * len(some))}) AND state = 'finished'"
            rows = self._attempts_where(where, *given, *some, grade=grade)
            found = {trial.job_id: trial for _, trial in rows}
            yield from (found[job] for job in some if job in found)

    def _attempts_where(
        self, where: str, *given: str, grade: str = "grade"
    ) -> Iterator[tuple[str, StoredTrial]]:
        columns = f"state, job, id, record, initial_files, {grade}"
        sql = f"SELECT {columns} FROM attempts WHERE {where}"  # noqa: S608 - ours
        for state, job, attempt, record, files, graded in self.database.rows(sql, *given):
            whole = self._whole(record, files)
            yield state, StoredTrial(job, attempt, whole, _json(graded), f"the record of {job}")

    def judgements(self) -> list[str]:
        """The names of those beside the run's grades."""
        sql = "SELECT DISTINCT name FROM judgements ORDER BY name"
        return [name for (name,) in self.database.rows(sql)]

    def finished_record(self, job_id: str) -> Record | None:
        """That of one trial; None: it is not finished, or its record is damaged."""
        for found in self.finished([job_id]):
            with suppress(RunDirectoryError):
                return found.record()
        return None

    def read_record(self, job_id: str) -> Record:
        """The trial's record. Raises RunDirectoryError if there is none, or a damaged one."""
        for found in self.finished([job_id]):
            return found.record()
        raise RunDirectoryError(f"{job_id} has no record in {self.path}")

    def read_grade(self, job_id: str) -> Grade | None:
        """The trial's grade; None if it has none that can be read."""
        return StoredTrial(job_id, 0, b"", self.grade_json(job_id), "").grade()

    def grade_json(self, job_id: str) -> bytes | None:
        """The same, as it is stored; empty if it is damaged."""
        sql = "SELECT grade FROM attempts WHERE job = ? AND state = 'finished'"
        return _json(self.database.value(sql, job_id))

    def all_attempts(self, job_id: str) -> Iterator[tuple[str, StoredTrial]]:
        """Every attempt at a trial with its state, in order."""
        return self._attempts_where("job = ? ORDER BY id", job_id)

    def attempts(self, job_id: str) -> Iterator[Record]:
        """Those that did not count, in order; damaged ones are left out."""
        for state, found in self.all_attempts(job_id):
            if state in ("retried", "unused") and found.record_json:
                with suppress(RunDirectoryError):
                    yield found.record()

    def trial_files(self, job_id: str) -> dict[str, ReadFile]:
        """All that is kept of a trial, by the paths that it has where it is exported as files.

        The attempt that counts or is under way is in ``record.json``, ``grading.json``, ``raw/``
        and ``files/``; the others, from 1, in ``attempt-1.json`` and ``raw.attempt-1/``.
        """
        sql = (
            "SELECT id, record IS NOT NULL, grade IS NOT NULL, state IN ('begun', 'finished')"
            " FROM attempts WHERE job = ? ORDER BY state = 'finished', state = 'begun', id"
        )
        attempts = self.database.rows(sql, job_id)
        found: dict[str, ReadFile] = {}
        number = 1  # Of the next that left anything; not all that were begun did
        for attempt, has_record, has_grade, may_count in attempts:
            before = len(found)
            counts = may_count and attempt == attempts[-1][0]
            aside = "" if counts else f".attempt-{number}"
            if has_record:
                name = "record.json" if counts else f"attempt-{number}.json"
                found[name] = partial(self._document, attempt, "record, initial_files")
            if has_grade:
                found["grading.json"] = partial(self._document, attempt, "grade, NULL")
            sql = "SELECT DISTINCT name FROM streams WHERE attempt = ? ORDER BY name"
            for (name,) in self.database.rows(sql, attempt):
                found[f"raw{aside}/{name}"] = partial(stream_of, self.database, attempt, name)
            sql = "SELECT path, sha256 FROM files WHERE attempt = ? ORDER BY path"
            for path, key in self.database.rows(sql, attempt):
                found[f"files{aside}/{path}"] = partial(self._blob, key.hex())
            number += len(found) > before
        return found

    def _document(self, attempt: int, columns: str) -> Iterator[bytes]:
        sql = f"SELECT {columns} FROM attempts WHERE id = ?"  # noqa: S608 - ours
        yield self._whole(*self.database.rows(sql, attempt)[0])

    def _blob(self, sha: str) -> Iterator[bytes]:
        yield self.blobs.get(sha) or b""

    def read_result(self, *, cases: bool = True) -> RunResult:
        """As :func:`load_result`."""
        return load_result(self.path, cases=cases)


class StoredGrades(Sequence[Grade]):
    """The grades of a run that this process writes, or has closed: each is read when needed."""

    def __init__(self, run: StoredRun, lines: Mapping[str, TrialLine]) -> None:
        """`lines`, by job: what is known without reading."""
        self._jobs, self.lines = list(lines), list(lines.values())
        self._run, self._again = run, False

    def __len__(self) -> int:
        return len(self._jobs)

    def __getitem__(self, place: Any) -> Any:
        return Grade.model_validate_json(self._json(place))

    def _json(self, place: int) -> bytes:
        if not self._again and not self._run.database.writable:  # it is closed
            again = Database(self._run.database.path)
            self._run, self._again = StoredRun(self._run.path, again), True
        job = self._jobs[place]
        if data := self._run.grade_json(job):
            return data
        hint = "`skillup run --resume` grades it anew"
        raise RunDirectoryError(f"the grade of {job} in {self._run.path} is damaged", hint=hint)

    def lines_of_json(self, mask: Mask) -> Iterator[bytes]:
        """Each as it is stored, on a line: masked already, but for what was no secret then."""
        for place in range(len(self)):
            data = self._json(place)
            known = mask is no_mask or is_absent(mask, data.decode())
            yield data if known else to_json(self[place], mask, indent=None).rstrip()


def _json(data: bytes | None) -> bytes | None:
    """What was packed; empty if it is damaged."""
    try:
        return unpack(data) if data is not None else None
    except ValueError:
        return b""


def parsed_record(data: bytes, where: str) -> Record:
    """The record in `data`, which is called `where` in messages. Raises RunDirectoryError for one
    that was cut short or is none of this version.
    """
    with suppress(ValidationError):
        record = Record.model_validate_json(data)
        # Turns find their checks by their numbers: with others, checks would be lost or swapped.
        in_order = [turn.turn_number for turn in record.turns] == [*range(1, len(record.turns) + 1)]
        if record.schema_version == RECORD_VERSION and in_order:
            return record
    hint = "run the trial again with skillup run --resume"
    raise RunDirectoryError(f"{where} is damaged", hint=hint)


def result_json(result: RunResult, mask: Mask) -> Iterator[bytes]:
    """``result.json``, part by part: each grade is a line, and one at a time is in memory."""
    cases = result.cases
    lists = {b"\n  ": lines_of_json(cases, mask)}
    without: dict[str, Any] = {"cases": []}
    if result.analysis is not None:
        lists[b"\n    "] = lines_of_json(result.analysis.cases, mask)
        without["analysis"] = result.analysis.model_copy(update={"cases": []})
    rest = to_json(result.model_copy(update=without), mask, indent=2)
    for indent, items in lists.items():
        # Within a text of JSON there is no line's end: nothing else looks like that.
        head, key, rest = rest.partition(indent + b'"cases": [')
        yield head + key
        between = b""
        for item in items:
            yield between + indent + b"  " + item
            between = b","
        yield indent if between else b""
    yield rest


def lines_of_json(items: Iterable[BaseModel], mask: Mask) -> Iterator[bytes]:
    if isinstance(items, StoredGrades):
        return items.lines_of_json(mask)
    return (to_json(item, mask, indent=None).rstrip() for item in items)


def load_result(folder: Path, *, cases: bool = True) -> RunResult:
    """``result.json`` in `folder`; where it is as we write it, without its cases if nobody needs
    them. Raises RunDirectoryError if there is none, or a damaged one.
    """
    path = folder / RESULT_FILE
    try:
        with disk_errors("read", path):
            from skillup.schema.grade import RunResult

            data = read_regular(path) if cases else b"".join(_lines_without_cases(path))
            return RunResult.model_validate_json(data)
    except ValidationError:
        hint = "`skillup run --resume` writes it anew, from the trials' grades"
        raise RunDirectoryError(f"{path} is damaged", hint=hint) from None


def _lines_without_cases(path: Path) -> Iterator[bytes]:
    inside = False
    with open_regular(path) as file:
        for line in file:
            inside = inside and not line.startswith(b"  ]")
            if not inside:
                yield line
            inside = inside or line == b'  "cases": [\n'
