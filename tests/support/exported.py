"""A run's files, as `skillup export --format files` writes them."""

from __future__ import annotations

import atexit
import json
import shutil
import tempfile
from pathlib import Path
from typing import Any

from skillup.store.export import export_files
from skillup.store.run_directory import RunDirectory


def exported(run: Path, out: Path | None = None) -> Path:
    """The folder that they are in; a new one each time, if none is named."""
    if out is None:
        place = Path(tempfile.mkdtemp(prefix="exported-"))
        atexit.register(shutil.rmtree, place, ignore_errors=True)
        out = place / "files"
    with RunDirectory.open(run) as directory:
        export_files(directory, out)
    return out


def stored_record(run: Path, job: str) -> dict[str, Any]:
    """The record of a finished trial, as JSON data."""
    with RunDirectory.open(run) as directory:
        [found] = directory.finished([job])
    data: dict[str, Any] = json.loads(found.record_json)
    return data
