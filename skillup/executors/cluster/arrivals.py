"""What a worker has sent back, laid out and put into the run's directory."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from skillup.executors.cluster import worker as over_there
from skillup.judges.models.cache import AnswerFolder, StoredAnswer
from skillup.plan import Job
from skillup.store import RunDirectory
from skillup.store.files import disk_errors
from skillup.store.trials import (
    make_fresh,
)


def unpack(
    data: bytes, jobs: Sequence[Job], scratch: Path, directory: RunDirectory, secrets: Any
) -> RunDirectory:
    """Lay out what a worker has written; blobs, answers, streams and artifacts go into the run.

    Secrets that only the client knows are masked, in file names, too.
    """
    with disk_errors("write", directory.path):
        laid_out = Path(tempfile.mkdtemp(dir=scratch))
        over_there.unpack_trials(data, laid_out)
        renamed = {}
        for file in sorted((laid_out / "blobs").glob("??/*")):
            renamed[file.name.encode()] = directory.blobs.put(file.read_bytes()).encode()
        answers = AnswerFolder(directory.judge_answers, secrets.mask, needed=True)
        for file in sorted((laid_out / "judge-answers").glob("*.json")):
            answers.write(StoredAnswer.model_validate_json(file.read_bytes()))
        there = RunDirectory.open(laid_out)
        for job in jobs:
            source, target = there.trial_directory(job.id), directory.trial_directory(job.id)
            for name in ("raw", "files"):
                # Those of earlier attempts were set aside there, and are here.
                earlier = len([*source.glob(f"{name}.attempt-*")])
                for number in range(1, earlier + 1):
                    _move(source / f"{name}.attempt-{number}", target / name, secrets)
                    make_fresh(target / name)
                _move(source / name, target / name, secrets)
        changed = {old: new for old, new in renamed.items() if old != new}
        for file in [*laid_out.rglob("*.json")] if changed else ():
            content = file.read_bytes()
            for old, new in changed.items():
                content = content.replace(old, new)
            file.write_bytes(content)
        return there


def _move(source: Path, target: Path, secrets: Any) -> None:
    for file in sorted(source.rglob("*")):
        # Agents name files, too.
        place = target / os.fsdecode(secrets.mask_bytes(os.fsencode(file.relative_to(source))))
        if file.is_dir():
            place.mkdir(parents=True, exist_ok=True)
            continue
        place.parent.mkdir(parents=True, exist_ok=True)
        content = file.read_bytes()
        masked = secrets.mask_bytes(content)
        shutil.move(file, place)
        if masked != content:
            place.write_bytes(masked)
