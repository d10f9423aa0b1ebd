"""What a worker has sent back, put into the run as if it had been held here."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from skillup.judges.models.stored import AnswerFolder, StoredAnswer
from skillup.plan import Job
from skillup.process.secrets import Secrets
from skillup.schema.checkpoint import Checkpoint
from skillup.schema.grade import Grade
from skillup.schema.record import Record
from skillup.store import RunDirectory
from skillup.store.checkpoints import CHECKPOINT_FILE
from skillup.store.trials import GRADE_FILE, RECORD_FILE, make_fresh, trial_directory

_ATTEMPT = re.compile(r"attempt-(\d+)\.json")


@dataclass(frozen=True, slots=True)
class Arrived:
    """One trial."""

    job: Job
    attempts: tuple[Record, ...]
    """Those that were tried again, in order."""
    record: Record | None
    """None: it was not finished."""
    grade: Grade | None
    checkpoint: Checkpoint | None
    """As far as it came, if it was left in the midst of its conversation."""


def take_in(
    laid_out: Path, jobs: Sequence[Job], directory: RunDirectory, secrets: Secrets
) -> list[Arrived]:
    """Move everything but records and grades into the run; those are returned.

    `laid_out` is what :func:`unpack_trials` made. Secrets that only the client knows are masked
    here. Blocks; raises RunDirectoryError or OSError where the disk does.
    """
    renamed = dict(_blobs(laid_out / "blobs", directory))
    answers = AnswerFolder(directory.judge_answers, secrets.mask, needed=True)
    for file in sorted((laid_out / "judge-answers").glob("*.json")):
        try:
            answers.write(StoredAnswer.model_validate_json(file.read_bytes()))
        except ValidationError:
            continue
    return [_trial(laid_out / "trials", job, directory, secrets, renamed) for job in jobs]


def _blobs(blobs: Path, directory: RunDirectory) -> Iterator[tuple[bytes, bytes]]:
    """Stores them; those that are called otherwise here, because something in them was masked."""
    for file in sorted(blobs.glob("??/*")):
        sha = directory.blobs.put(file.read_bytes())
        if sha != file.name:
            yield file.name.encode(), sha.encode()


def _trial(
    trials: Path, job: Job, directory: RunDirectory, secrets: Secrets, renamed: dict[bytes, bytes]
) -> Arrived:
    source, target = trial_directory(trials, job.id), directory.trial_directory(job.id)
    for name in ("raw", "files"):
        # Those of earlier attempts were set aside; here they are, too, after those from before.
        for number in range(1, 1000):
            earlier = source / f"{name}.attempt-{number}"
            if not earlier.is_dir():
                break
            _move(earlier, target / name, secrets)
            make_fresh(target / name)
        _move(source / name, target / name, secrets)

    def read(file: Path) -> bytes | None:
        if not file.is_file():
            return None
        content = file.read_bytes()
        for before, after in renamed.items():
            content = content.replace(before, after)
        return content

    found = [(int(m[1]), f) for f in source.glob("*.json") if (m := _ATTEMPT.fullmatch(f.name))]
    attempts = [Record.model_validate_json(read(file) or b"") for _, file in sorted(found)]
    record, grade = read(source / RECORD_FILE), read(source / GRADE_FILE)
    checkpoint = read(source / CHECKPOINT_FILE)
    return Arrived(
        job,
        tuple(attempts),
        Record.model_validate_json(record) if record is not None else None,
        Grade.model_validate_json(grade) if grade is not None else None,
        Checkpoint.model_validate_json(checkpoint) if checkpoint is not None else None,
    )


def _move(source: Path, target: Path, secrets: Secrets) -> None:
    if not source.is_dir():
        return
    for file in sorted(source.rglob("*")):
        place = target / file.relative_to(source)
        if file.is_dir():
            place.mkdir(parents=True, exist_ok=True)
            continue
        place.parent.mkdir(parents=True, exist_ok=True)
        content = file.read_bytes()
        masked = secrets.mask_bytes(content)
        if masked == content:
            shutil.move(file, place)
        else:
            place.write_bytes(masked)
            place.chmod(file.stat().st_mode & 0o777)
