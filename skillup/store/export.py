"""A run as files, for people and other tools: one directory for each trial.

OUT/run.json                 what was asked for: plan, versions, options
OUT/events.jsonl             the journal, an event a line
OUT/result.json              every grade
OUT/trials/<job>/            record.json, grading.json, raw/, files/; earlier attempts beside them
OUT/blobs/                   contents of workspace files, by their SHA-256
OUT/judge-answers/           what models answered to judges, by the SHA-256 of the question
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from skillup.errors import RunDirectoryError
from skillup.schema.record import FileState
from skillup.store.files import disk_errors, no_mask, read_regular, to_json, unpack
from skillup.store.places import RESULT_FILE, directory_of_job
from skillup.store.stored_run import StoredRun, StoredTrial
from skillup.workspace.disk import path_problem

INFO_FILE = "run.json"
RECORD_FILE = "record.json"
GRADE_FILE = "grading.json"
TRIALS_FOLDER = "trials"
ANSWERS_FOLDER = "judge-answers"
JOB_FILE = "job-id.txt"


def export_files(run: StoredRun, out: Path) -> int:
    """Writes the run below `out`; the number of trials. Raises RunDirectoryError if `out` is there
    and not empty, or cannot be written, or if the run is damaged.
    """

    def write(name: str, parts: Iterable[bytes]) -> None:
        if path_problem(name) is not None:
            raise RunDirectoryError(f"{run.path} is no run of skillup: it has a file {name!r}")
        path = out / name
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("wb") as file:
            try:
                file.writelines(parts)
            except ValueError:
                raise RunDirectoryError(f"{name} is damaged in {run.database.path}") from None

    with disk_errors("write", out):
        if out.exists() and (not out.is_dir() or any(out.iterdir())):
            raise RunDirectoryError(f"{out} is not empty", hint="name a new folder with --out")
        write(INFO_FILE, [to_json(run.run_info(), no_mask, indent=2)])
        write("events.jsonl", (to_json(event, no_mask, indent=None) for event in run.events()))
        result = run.path / RESULT_FILE
        if result.is_file():
            write(RESULT_FILE, [result.read_bytes()])
        for key, data in run.database.each("SELECT key, json FROM answers"):
            write(f"{ANSWERS_FOLDER}/{key}.json", map(unpack, [data]))
        for later in sorted((run.path / ANSWERS_FOLDER).glob("*.json")):
            write(f"{ANSWERS_FOLDER}/{later.name}", [later.read_bytes()])
        # One by one: where there is no write-ahead log, no writer goes on while a query does.
        for (key,) in run.database.rows("SELECT sha256 FROM blobs"):
            found = run.database.rows("SELECT data FROM blobs WHERE sha256 = ?", key)
            write(f"blobs/{key.hex()[:2]}/{key.hex()}", (unpack(data) for (data,) in found))
        jobs = sorted(run.begun_jobs())
        for job in jobs:
            place = f"{TRIALS_FOLDER}/{directory_of_job(job)}"
            for name, read in run.trial_files(job).items():
                write(f"{place}/{name}", read())
            write(f"{place}/{JOB_FILE}", [job.encode()])
    return len(jobs)


def exported_trials(out: Path) -> Iterator[tuple[str, Path]]:
    """Job id and directory of all trials with a record below `out`, in fixed order."""
    for parent, names, files in os.walk(out / TRIALS_FOLDER):
        names[:] = sorted(name for name in names if name.partition(".")[0] not in ("raw", "files"))
        if RECORD_FILE in files:
            file = Path(parent, JOB_FILE)
            with disk_errors("read", file):
                yield file.read_text("utf-8"), Path(parent)


def exported_trial(job_id: str, place: Path) -> StoredTrial:
    """The trial in a directory of an exported run. Raises RunDirectoryError."""
    record, grade = place / RECORD_FILE, place / GRADE_FILE
    with disk_errors("read", record):
        graded = read_regular(grade) if grade.is_file() else None
        return StoredTrial(job_id, 0, read_regular(record), graded, str(record))


def load_info(out: Path) -> dict[str, Any]:
    """What the run below `out` says of itself. Raises RunDirectoryError if that is damaged."""
    path = out / INFO_FILE
    with suppress(TypeError, ValueError, RecursionError), disk_errors("read", path):
        return {**json.loads(read_regular(path))}
    raise RunDirectoryError(f"{path} is damaged", hint="export the run anew")


def exported_content(out: Path, state: FileState) -> bytes | None:
    """The content of a file; None if it was not kept, or is not there as it was."""
    if state.sha256 is None or not state.kept:
        return None
    with suppress(OSError):
        content = (out / "blobs" / state.sha256[:2] / state.sha256).read_bytes()
        return content if hashlib.sha256(content).hexdigest() == state.sha256 else None
    return None
