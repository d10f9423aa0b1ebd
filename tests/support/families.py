"""Trials that share turns, held without a run around them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from skillup.engines.base import Engine
from skillup.load.suites import load_paths
from skillup.plan import Job, Selection, make_plan
from skillup.schema.profile import Profile
from skillup.trial import TrialRequest
from skillup.workspace import BlobStore
from tests.support.trees import make_tree

PROFILE = Profile(name="p", engine="scripted")


def jobs_of(root: Path, case: str, **selection: Any) -> list[Job]:
    """The plan's jobs for a suite with this one case, `c`."""
    make_tree(root, {"s/eval.yaml": "name: d\n", "s/c.yaml": case})
    suites = load_paths([root / "s"]).or_raise().suites
    profiles = {str(suite.path): [PROFILE] for suite in suites}
    return list(make_plan(suites, profiles, Selection(**selection)).jobs)


def request_of(root: Path, job: Job, engine: Engine, name: str) -> TrialRequest:
    """To hold `job` in directories of its own, below ``root/NAME``."""
    place = (root / name).resolve()
    for part in ("raw", "files", "scratch"):
        (place / part).mkdir(parents=True)
    return TrialRequest(
        run_id="r",
        job=job,
        engine=engine,
        raw_dir=place / "raw",
        artifacts_dir=place / "files",
        blobs=BlobStore(root / "blobs"),
        scratch=place / "scratch",
        environment=dict(os.environ),
    )
