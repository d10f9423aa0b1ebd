"""The trials of a run on disk: where each is, and its record and grade."""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from pydantic import ValidationError

from skillup.errors import RunDirectoryError
from skillup.schema.grade import Grade
from skillup.schema.record import CHECKPOINT_VERSION, RECORD_VERSION, Checkpoint, Record, TurnError
from skillup.store.files import (
    disk_errors,
    make_directory,
    read_regular,
    remove_temporary_files,
    set_aside,
    write_atomic,
)
from skillup.store.journal import Mask, to_json
from skillup.store.places import directory_of_job, is_reserved, job_of_directory

RECORD_FILE = "record.json"
GRADE_FILE = "grading.json"
_JOB_ID_FILE = "job-id.txt"


@dataclass(frozen=True, slots=True)
class TrialPlace:
    """The directories of one trial; all exist and are the trial's own."""

    directory: Path
    raw: Path
    """For the engine's streams, a file of each for every turn."""
    files: Path
    """For artifacts that are kept beside the record."""
    scratch: Path
    """For workspace and home; a real path, removed when the trial has finished."""


class DamagedRecordError(Exception):
    """A record file that was cut short or is no record; ``path`` says which."""

    def __init__(self, path: Path) -> None:
        super().__init__(str(path))
        self.path = path


class ChangedRecordError(DamagedRecordError):
    """A whole record, but not the one that the run has written there."""


class ForeignRecordError(RunDirectoryError):
    """A record in another version's form, mostly a newer one's; ``version`` is the form's."""

    def __init__(self, path: Path, version: str) -> None:
        self.version = version
        super().__init__(
            f"{path} is a {version}; this skillup reads {RECORD_VERSION}",
            hint="use the version of skillup that held the run",
        )


def trial_directory(trials: Path, job_id: str) -> Path:
    """Where the trial is or would be; nothing is made."""
    return trials / directory_of_job(job_id)


def make_trial_directory(trials: Path, job_id: str) -> Path:
    """The trial's directory, made if need be, and clean of what killed writers left."""
    directory = trial_directory(trials, job_id)
    make_directory(directory)
    remove_temporary_files(directory)
    if job_of_directory(directory.relative_to(trials).as_posix()) is None:
        write_atomic(directory / _JOB_ID_FILE, job_id.encode(errors="surrogatepass"))
    return directory


def make_fresh(directory: Path) -> None:
    """Makes an empty directory; one with content (an earlier attempt's) is set aside."""
    if directory.is_dir() and any(directory.iterdir()):
        set_aside(directory, "attempt")
    make_directory(directory)


def directories_with_records(trials: Path) -> Iterator[tuple[str, Path]]:
    """Job id and directory of all trials with a record file, damaged or not, in fixed order."""
    root = str(trials)
    for parent, names, files in os.walk(root):
        if len(names) > 1:
            names.sort(key=_natural)
        names[:] = [name for name in names if not is_reserved(name)]
        if RECORD_FILE in files:
            directory = Path(parent)
            yield _job_id(parent[len(root) + 1 :] or ".", directory), directory


def _job_id(relative: str, directory: Path) -> str:
    job_id = job_of_directory(relative)
    if job_id is not None:
        return job_id
    with disk_errors("read", directory / _JOB_ID_FILE):
        return read_regular(directory / _JOB_ID_FILE).decode(errors="surrogatepass")


def _natural(name: str) -> tuple[int, int, str]:
    """Numbers by value (trial 10 comes after trial 9), before names."""
    return (0, int(name), name) if name.isdecimal() else (1, 0, name)


def load_record(path: Path, written: Collection[str] | None = None) -> Record:
    """The record in the file.

    `written` are the SHA-256 of the contents it may have; None: any.
    Raises ChangedRecordError if it has others; DamagedRecordError if it is no complete record, or
    its turns are not numbered from 1 in order; ForeignRecordError if it was written by a version of
    skillup with another form of records; RunDirectoryError if it cannot be read.
    """
    with disk_errors("read", path):
        data = read_regular(path)
    try:
        record = Record.model_validate_json(data)
    except ValidationError:
        version = _version(data)
        if version is not None and version != RECORD_VERSION:
            raise ForeignRecordError(path, version) from None
        raise DamagedRecordError(path) from None
    if record.schema_version != RECORD_VERSION:
        # That it looks like one of ours does not say that it means the same.
        raise ForeignRecordError(path, record.schema_version)
    for number, turn in enumerate(record.turns, start=1):
        # Turns find their checks by their numbers: with others, checks would be lost or swapped.
        if turn.turn_number != number:
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


def _version(data: bytes) -> str | None:
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        return None
    version = value.get("schema_version") if isinstance(value, dict) else None
    return version if isinstance(version, str) else None


# ``trials/<job>/checkpoint.json``: an unfinished trial, as far as its last whole turn.

CHECKPOINT_FILE = "checkpoint.json"
_UNUSED = "unused"


def save_checkpoint(directory: Path, checkpoint: Checkpoint, mask: Mask) -> None:
    """Stores it in place of an older one; not at all if a variable of it holds a secret.

    What is masked could not be sent any more. Raises RunDirectoryError.
    """
    if any(mask(value) != value for value in checkpoint.variables.values()):
        drop_checkpoint(directory)
        return
    write_atomic(directory / CHECKPOINT_FILE, to_json(checkpoint, mask, indent=None))


def load_checkpoint(directory: Path) -> Checkpoint | None:
    """None if there is none that is whole and of this version."""
    return _load(directory / CHECKPOINT_FILE)


def unused_checkpoints(directory: Path) -> Iterator[Checkpoint]:
    """Those that were set aside, as far as they are whole and of this version."""
    for path in sorted(directory.glob(f"{CHECKPOINT_FILE}.{_UNUSED}-*")):
        found = _load(path)
        if found is not None:
            yield found


def drop_checkpoint(directory: Path) -> None:
    """Removes it: the trial has finished, or is held anew."""
    with disk_errors("remove", directory / CHECKPOINT_FILE), suppress(FileNotFoundError):
        (directory / CHECKPOINT_FILE).unlink()


def set_checkpoint_aside(directory: Path) -> None:
    """Keeps it as ``checkpoint.json.unused-1``: the trial was not gone on with."""
    if (directory / CHECKPOINT_FILE).exists():
        set_aside(directory / CHECKPOINT_FILE, _UNUSED)


def _load(path: Path) -> Checkpoint | None:
    try:
        found = Checkpoint.model_validate_json(read_regular(path))
    except (OSError, ValidationError):
        return None
    return found if found.schema_version == CHECKPOINT_VERSION else None
