"""Runs a plan on this machine, with an observer of the test's own."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import anyio

from skillup.executors import RunObserver, RunOptions, run_locally
from skillup.plan import Job, Plan
from skillup.redaction.secrets import Secrets
from skillup.schema.grade import Grade
from skillup.schema.record import Record
from skillup.store import RunDirectory
from skillup.trial import TrialEvent


class Quiet:
    """An observer that says nothing."""

    def trial_started(self, job: Job, attempt: int) -> None:
        """Nothing."""

    def trial_event(self, event: TrialEvent) -> None:
        """Nothing."""

    def trial_finished(self, job: Job, record: Record, grade: Grade) -> None:
        """Nothing."""

    def trial_retried(self, job: Job, record: Record, reason: str) -> None:
        """Nothing."""

    def trial_lost(self, job: Job, worker: str, reason: str) -> None:
        """Nothing."""


def options_at(path: Path, **options: Any) -> RunOptions:
    """For the run directory at `path`."""
    environment = {name: os.environ[name] for name in ("PATH", "TMPDIR") if name in os.environ}
    return RunOptions(
        run_id="run",
        environment=environment,
        secrets=Secrets.from_environment({}, ()),
        register_dir=path.with_name("processes"),
        **options,
    )


def run_plan(
    plan: Plan, path: Path, observer: RunObserver | None = None, **options: Any
) -> dict[str, Grade]:
    """The grades by job; the run directory at `path` is made, or gone on with."""
    there = path.exists()
    opened = RunDirectory.open(path, writable=True) if there else RunDirectory.create(path, {})
    told = options_at(path, **options)
    grades: dict[str, Grade] = {}
    with opened as directory:
        anyio.run(run_locally, plan, directory, told, observer or Quiet(), grades)
    return grades
