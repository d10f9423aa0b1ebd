"""What a worker has sent back, put into the run as if it had been held here."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from skillup.executors.cluster.trial_parcel import unpack_trials
from skillup.judges.models.cache import AnswerFolder, StoredAnswer
from skillup.plan import Job
from skillup.redaction.secrets import Secrets
from skillup.schema.grade import Grade
from skillup.schema.record import Checkpoint, Record
from skillup.store import RunDirectory
from skillup.store.files import disk_errors
from skillup.store.trials import (
    CHECKPOINT_FILE,
    GRADE_FILE,
    RECORD_FILE,
    make_fresh,
    trial_directory,
)

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


class Merging:
    """What the worker of one unit sends, at once or in parts."""

    def __init__(self, directory: RunDirectory, secrets: Secrets) -> None:
        """`directory` is the run's; secrets that only the client knows are masked."""
        self._directory = directory
        self._secrets = secrets
        self._renamed: dict[bytes, bytes] = {}
        """Blobs that are called otherwise here, because something in them was masked."""
        self.there: set[str] = set()
        """Blobs and answers that have come, by their names in an archive."""

    def take_in(
        self, data: bytes, jobs: Sequence[Job], scratch: Path, *, whole: bool
    ) -> list[Arrived]:
        """Put everything but records and grades of `jobs` into the run; those are returned.

        Unless the unit was held as a `whole`, only those that have finished. `data` is what
        :func:`pack_trials` made; it is laid out below `scratch` meanwhile. Blocks; raises
        RunDirectoryError where the disk refuses, and for what is no such data tarfile.TarError,
        EOFError, zlib.error or ValidationError.
        """
        with (
            disk_errors("write", self._directory.path),
            tempfile.TemporaryDirectory(dir=scratch) as name,
        ):
            laid_out = Path(name)
            come = unpack_trials(data, laid_out)
            self._take_blobs(laid_out / "blobs")
            self._take_answers(laid_out / "judge-answers")
            self.there.update(come)
            trials = laid_out / "trials"
            return [
                self._trial(trials, job)
                for job in jobs
                if whole or (trial_directory(trials, job.id) / GRADE_FILE).is_file()
            ]

    def _take_blobs(self, blobs: Path) -> None:
        for file in sorted(blobs.glob("??/*")):
            sha = self._directory.blobs.put(file.read_bytes())
            if sha != file.name:
                self._renamed[file.name.encode()] = sha.encode()

    def _take_answers(self, answers: Path) -> None:
        kept = AnswerFolder(self._directory.judge_answers, self._secrets.mask, needed=True)
        for file in sorted(answers.glob("*.json")):
            try:
                kept.write(StoredAnswer.model_validate_json(file.read_bytes()))
            except ValidationError:
                continue

    def _trial(self, trials: Path, job: Job) -> Arrived:
        source = trial_directory(trials, job.id)
        target = self._directory.trial_directory(job.id)
        for name in ("raw", "files"):
            # Those of earlier attempts were set aside; here they are, too, after those from before.
            for number in range(1, 1000):
                earlier = source / f"{name}.attempt-{number}"
                if not earlier.is_dir():
                    break
                _move(earlier, target / name, self._secrets)
                make_fresh(target / name)
            _move(source / name, target / name, self._secrets)
        found = [(int(m[1]), f) for f in source.glob("*.json") if (m := _ATTEMPT.fullmatch(f.name))]
        attempts = [self._read(file) or b"" for _, file in sorted(found)]
        record, grade = self._read(source / RECORD_FILE), self._read(source / GRADE_FILE)
        checkpoint = self._read(source / CHECKPOINT_FILE)
        return Arrived(
            job,
            tuple(Record.model_validate_json(attempt) for attempt in attempts),
            Record.model_validate_json(record) if record is not None else None,
            Grade.model_validate_json(grade) if grade is not None else None,
            Checkpoint.model_validate_json(checkpoint) if checkpoint is not None else None,
        )

    def _read(self, file: Path) -> bytes | None:
        if not file.is_file():
            return None
        content = file.read_bytes()
        for before, after in self._renamed.items():
            content = content.replace(before, after)
        return content


def _move(source: Path, target: Path, secrets: Secrets) -> None:
    if not source.is_dir():
        return
    for file in sorted(source.rglob("*")):
        # Agents name files, too.
        name = os.fsencode(file.relative_to(source))
        place = target / os.fsdecode(secrets.mask_bytes(name))
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
