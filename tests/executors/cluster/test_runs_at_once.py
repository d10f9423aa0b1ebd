"""Several runs that one cluster holds at once."""

from __future__ import annotations

import json
from pathlib import Path

from distributed import Client

from tests.support.dask_cluster import GUARD_SECONDS, DaskCluster, wait_for
from tests.support.project import Project

STEP = """for f in first second; do test -e 'PLACE'/$f || { touch 'PLACE'/$f; break; }; done
until test -e 'PLACE'/second; do sleep 0.05; done"""


def test_what_is_said_in_a_run_is_told_to_its_own_client_alone(
    project: Project, cluster: DaskCluster, tmp_path: Path
) -> None:
    """F15: a client gets all that is said under its run's topic."""
    step = STEP.replace("PLACE", str(tmp_path))
    case = {"input": {"prompt": "go"}, "assertions": [{"contains": "ok"}]}
    held = {**case, "scripted": [{"steps": [{"run": step}], "say": "ok"}]}
    project.write({"eval.yaml": "name: x\n", "a.yaml": json.dumps(held)})
    cluster.start_worker("one", threads=2)
    run = ("run", ".", "--executor", "dask", "--scheduler", cluster.address, "-q", "--out")

    with project.start(*run, ".skillup/runs/first") as one:
        wait_for(tmp_path / "first")
        with project.start(*run, ".skillup/runs/second") as other:
            for process in (one, other):
                stdout, stderr = process.communicate(timeout=GUARD_SECONDS)
                assert process.returncode == 0, stdout + stderr

    with Client(cluster.address, set_as_default=False) as client:  # type: ignore[no-untyped-call]
        said = client.get_events()
    told = [{event["event"] for _, event in said[topic]} for topic in said if "skillup" in topic]
    assert told == [{"started"}, {"started"}]
