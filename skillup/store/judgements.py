"""Judgements: grades that were derived again, beside those of the run and never over them.

HOME/judgements/<time>-<id>/judgement.json       what was judged by what, and the counts
HOME/judgements/<time>-<id>/trials/<job>/grading.json

HOME is the run's directory, or that of a record that stands alone. ``judgement.json`` is written
last: without it a judgement is not complete.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from skillup.schema.grade import Grade
from skillup.store.atomic import make_directory, write_atomic
from skillup.store.errors_of_disk import disk_errors
from skillup.store.json_text import no_mask, to_json
from skillup.store.place import new_run_id
from skillup.store.trials import GRADE_FILE, trial_directory

JUDGEMENTS = "judgements"
JUDGEMENT_FILE = "judgement.json"
JUDGEMENT_VERSION = "skillup.judgement/1"


class JudgementWriter:
    """Takes grades as they come. Methods raise RunDirectoryError where the disk refuses."""

    def __init__(self, home: Path) -> None:
        self.id = new_run_id()
        self.path = home / JUDGEMENTS / self.id
        make_directory(self.path)

    def write_grade(self, job_id: str, grade: Grade) -> None:
        """Stores the grade of a job of the run; records hold no secrets any more, nor does it."""
        directory = trial_directory(self.path / "trials", job_id)
        path = directory / GRADE_FILE
        # Not synced one by one: it can be derived again at any time.
        with disk_errors("write", path):
            directory.mkdir(parents=True, exist_ok=True)
            path.write_bytes(to_json(grade, no_mask, indent=2))

    def finish(self, info: Mapping[str, Any]) -> None:
        """Stores ``judgement.json``: `info`, and which judgement it is."""
        head = {"schema_version": JUDGEMENT_VERSION, "judgement_id": self.id}
        write_atomic(self.path / JUDGEMENT_FILE, to_json({**head, **info}, no_mask, indent=2))
