"""The trials of a run on disk: where each is, and its record, grade and checkpoint."""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Iterator
from hashlib import sha256
from pathlib import Path

from pydantic import ValidationError

from skillup.errors import RunDirectoryError
from skillup.frozen import frozen
from skillup.schema.grade import Grade
from skillup.schema.record import CHECKPOINT_VERSION, RECORD_VERSION, Checkpoint, Record, TurnError
from skillup.store.files import disk_errors, read_regular
from skillup.store.places import is_reserved, job_of_directory

RECORD_FILE = "record.json"
GRADE_FILE = "grading.json"
CHECKPOINT_FILE = "checkpoint.json"
JOB_ID_FILE = "job-id.txt"


@frozen
class TrialPlace:
    """The directories of one trial; all exist and are the trial's own."""

    raw: Path
    """For the engine's streams, a file of each for every turn."""
    files: Path
    """For artifacts that are kept beside the record."""
    scratch: Path
    """For workspace and home; a real path, removed when the trial has finished."""


class DamagedRecordError(Exception):
    """A record file that was cut short or is no record; ``path`` says which."""

    what = "is damaged"
    """The rest of a sentence that begins with the record."""

    def __init__(self, path: Path) -> None:
        super().__init__(str(path))
        self.path = path


class ChangedRecordError(DamagedRecordError):
    """A whole record, but not the one that the run has written there."""

    what = "is not what the run has written: something else changed it or put it there"


class ForeignRecordError(RunDirectoryError):
    """A record in another version's form, mostly a newer one's; ``version`` is the form's."""

    def __init__(self, path: Path, version: str) -> None:
        self.version = version
        super().__init__(
            f"{path} is a {version}; this skillup reads {RECORD_VERSION}",
            hint="use the version of skillup that made the run",
        )


def directories_with_records(trials: Path) -> Iterator[tuple[str, Path]]:
    """Job id and directory of all trials with a record file, damaged or not, in fixed order."""
    root = str(trials)
    for parent, names, files in os.walk(root):
        names[:] = sorted(name for name in names if not is_reserved(name))
        if RECORD_FILE in files:
            job_id = job_of_directory(parent[len(root) + 1 :] or ".")
            if job_id is None:
                note = Path(parent, JOB_ID_FILE)
                with disk_errors("read", note):
                    job_id = read_regular(note).decode(errors="surrogatepass")
            yield job_id, Path(parent)


def load_record(path: Path, written: Collection[str] | None = None) -> Record:
    """The record in the file; `written`: SHA-256 of the contents it may have, None: any.

    Raises ChangedRecordError, DamagedRecordError (also for turns that are not numbered from 1 in
    order), ForeignRecordError, or RunDirectoryError.
    """
    with disk_errors("read", path):
        data = read_regular(path)
    try:
        record = Record.model_validate_json(data)
        version = record.schema_version
    except ValidationError:
        try:
            version = json.loads(data)["schema_version"]
        except (ValueError, RecursionError, KeyError, TypeError, IndexError):
            version = RECORD_VERSION
        if version == RECORD_VERSION or not isinstance(version, str):
            raise DamagedRecordError(path) from None
    if version != RECORD_VERSION:
        # Even if it looks like one of ours, it may not mean the same.
        raise ForeignRecordError(path, version)
    # Turns find their checks by their numbers: with others, checks would be lost or swapped.
    if [turn.turn_number for turn in record.turns] != [*range(1, len(record.turns) + 1)]:
        raise DamagedRecordError(path)
    if written is not None and sha256(data).hexdigest() not in written:
        raise ChangedRecordError(path)
    return record


def load_grade(path: Path, written: Collection[str] | None = None) -> Grade | None:
    """The grade in the file; None if there is none or a damaged one: it can be derived again.

    None, too, if it is none of those `written`, as in :func:`load_record`.
    """
    try:
        data = read_regular(path)
        grade = Grade.model_validate_json(data)
        for error in (grade.error, *(turn.error for turn in grade.turns)):
            if error is not None:
                TurnError.model_validate(error)
    except (OSError, ValidationError):
        return None
    known = written is None or sha256(data).hexdigest() in written
    return grade if known else None


def load_checkpoint(path: Path) -> Checkpoint | None:
    """None if there is none that is whole and of this version."""
    try:
        found = Checkpoint.model_validate_json(read_regular(path))
    except (OSError, ValidationError):
        return None
    return found if found.schema_version == CHECKPOINT_VERSION else None
