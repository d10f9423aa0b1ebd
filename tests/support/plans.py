"""Plans of small suites, and running them on this machine with an observer of the test's own.

``a_plan(tmp_path, {"a": {}, "b": {"depends_on": ["a"]}}, trials=3)``
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import anyio

from skillup.engines.base import Engine
from skillup.executors.local import run_locally
from skillup.executors.run import Run, RunObserver, RunOptions
from skillup.load.suites import load_paths
from skillup.plan import Job, Plan, Selection, make_plan
from skillup.redaction.secrets import NO_SECRETS
from skillup.schema.grade import Grade
from skillup.schema.line import TrialLine
from skillup.schema.profile import Profile
from skillup.store import RunDirectory
from skillup.trial.request import TrialRequest
from skillup.workspace.snapshot import BlobStore
from tests.support.engine_turns import KeptStreams
from tests.support.trees import make_tree

_CASE: Mapping[str, Any] = {"input": {"prompt": "hi"}, "scripted": [{"say": "hi"}]}


def a_plan(
    root: Path,
    cases: Mapping[str, Mapping[str, Any] | str],
    *,
    engines: Sequence[str] = ("p",),
    suite: str = "name: s\n",
    **selection: Any,
) -> Plan:
    """The plan for a suite with these cases; a case that is a text is the whole file."""
    files = {
        f"s/{name}.yaml": own if isinstance(own, str) else json.dumps({**_CASE, **own})
        for name, own in cases.items()
    }
    make_tree(root, {"s/eval.yaml": suite, **files})
    suites = load_paths([root / "s"]).or_raise().suites
    profiles = [Profile(name=name, engine="scripted") for name in engines]
    return make_plan(suites, {str(s.path): profiles for s in suites}, Selection(**selection))


def jobs_of(root: Path, case: str, **selection: Any) -> list[Job]:
    """The plan's jobs for a suite with this one case, `c`."""
    return list(a_plan(root, {"c": case}, suite="name: d\n", **selection).jobs)


def request_of(root: Path, job: Job, engine: Engine, name: str) -> TrialRequest:
    """To run `job` in directories of its own, below ``root/NAME``."""
    place = (root / name).resolve()
    (place / "scratch").mkdir(parents=True)
    return TrialRequest(
        run_id="r",
        job=job,
        engine=engine,
        streams=KeptStreams(),
        keep_artifact=partial(_keep, place / "files"),
        blobs=BlobStore(),
        scratch=place / "scratch",
        environment=dict(os.environ),
    )


def _keep(folder: Path, path: str, content: bytes) -> None:
    (folder / path).parent.mkdir(parents=True, exist_ok=True)
    (folder / path).write_bytes(content)


class Quiet:
    """An observer that ignores everything."""

    def _nothing(self, *_: object) -> None:
        """Nothing."""

    trial_started: Any = _nothing
    trial_event: Any = _nothing
    trial_finished: Any = _nothing
    trial_retried: Any = _nothing


def options_at(path: Path, **options: Any) -> RunOptions:
    environment = {name: os.environ[name] for name in ("PATH", "TMPDIR") if name in os.environ}
    return RunOptions(
        run_id="run",
        environment=environment,
        secrets=NO_SECRETS.also_of({}, ()),
        register_dir=path.with_name("processes"),
        **options,
    )


def run_plan(
    plan: Plan, path: Path, observer: RunObserver | None = None, **options: Any
) -> dict[str, Grade]:
    """The grades by job; the run directory at `path` is made, or gone on with."""
    exists = path.exists()
    opened = RunDirectory.open(path, writable=True) if exists else RunDirectory.create(path, {})
    run_options = options_at(path, **options)
    lines: dict[str, TrialLine] = {}
    with opened as directory:
        run = Run(plan, directory, run_options, observer or Quiet(), lines)
        anyio.run(run_locally, run)
        grades = {job: directory.read_grade(job) for job in lines}
    return {job: grade for job, grade in grades.items() if grade is not None}
