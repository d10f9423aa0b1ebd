"""Workers that come back with nothing of what they had, or have no room: trials go elsewhere."""

from __future__ import annotations

import json
import os
import signal
import socket
from pathlib import Path

from tests.support.dask_cluster import GUARD_SECONDS, DaskCluster, wait_for
from tests.support.project import Project
from tests.support.small_disk import namespace

BEGUN = "test -e 'FLAG' || { touch 'FLAG'; sleep 600; }"
CASE = """
    input: {prompt: go}
    assertions: [{contains: ok}]
    scripted: [{steps: [{run: "STEP"}], say: ok}]
    """


def on(cluster: DaskCluster, *more: str) -> tuple[str, ...]:
    return ("run", ".", "--executor", "dask", "--scheduler", cluster.address, "--json", *more)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def start_small_worker(cluster: DaskCluster) -> None:
    """One with 5 MB of room for all that it writes."""
    disk = cluster.root / "small"  # Dask's local directory
    disk.mkdir()
    mount = f'mount -t tmpfs -o size=5m none "{disk}" && exec "$@"'
    within = [*namespace(), "sh", "-c", mount, "sh"]
    cluster.start_worker("small", env={"TMPDIR": str(disk)}, within=within)


def test_a_worker_that_begins_anew_at_the_same_address_is_sent_everything_again(
    cluster: DaskCluster, tmp_path: Path
) -> None:
    project = Project(tmp_path)
    case = CASE.replace("STEP", BEGUN.replace("FLAG", str(tmp_path / "begun")))
    project.write({"eval.yaml": "name: x\n", "a.yaml": case, "b.yaml": case})
    port = free_port()
    first = cluster.start_worker("one", port=port)
    with project.start(*on(cluster)) as process:
        wait_for(tmp_path / "begun")
        os.kill(first.pid, signal.SIGKILL)
        first.wait(GUARD_SECONDS)
        cluster.start_worker("again", port=port)
        stdout, stderr = process.communicate(timeout=GUARD_SECONDS)
    assert process.returncode == 0, stderr
    assert [case["status"] for case in json.loads(stdout)["cases"]] == ["PASS", "PASS"]
    assert stderr.count("LOST") <= 3, stderr


def test_one_whose_disk_is_full_gets_no_more_trials_and_others_hold_them(
    cluster: DaskCluster, tmp_path: Path
) -> None:
    project = Project(tmp_path)
    case = CASE.replace("STEP", "head -c 3000000 /dev/urandom > made.bin")
    project.write({"eval.yaml": "name: x\n", "a.yaml": case})
    start_small_worker(cluster)
    cluster.start_worker("large")
    outcome = project.run(*on(cluster, "--trials", "4"))
    assert outcome.exit_code == 0, outcome.stderr
    assert [case["status"] for case in outcome.data["cases"]] == ["PASS"] * 4
    (warning,) = outcome.data["warnings"]
    assert "No space left on device" in warning
    assert "it gets no trials" in outcome.stderr


def test_what_an_agent_changes_on_a_worker_judges_no_trial_there(
    cluster: DaskCluster, tmp_path: Path
) -> None:
    """S8: an earlier trial had edited the golden file, and the case, that the next one met."""
    project, place = Project(tmp_path), cluster.root / "one"  # Dask's local directory
    edit = (
        f"for d in $(find '{place}' -name golden.txt -printf '%h '); do echo wrong > $d/golden.txt;"
        f" sed -i 's/golden_file.*}}/contains: wrong}}/' $d/b.yaml; touch '{tmp_path}/edited'; done"
    )
    project.write(
        {
            "eval.yaml": "name: x\n",
            "golden.txt": "right\n",
            "a.yaml": CASE.replace('"STEP"', json.dumps(edit)),
            "b.yaml": """
                depends_on: [a]
                input: {prompt: go}
                assertions: [{golden_file: golden.txt}]
                scripted: [{say: wrong}]
                """,
        }
    )
    cluster.start_worker("one")
    outcome = project.run(*on(cluster, "-j1"))
    first, second = outcome.data["cases"]
    assert (first["status"], second["status"]) == ("PASS", "FAIL"), outcome.stderr
    assert (tmp_path / "edited").exists()


def test_a_run_whose_only_worker_has_no_room_left_ends(
    cluster: DaskCluster, tmp_path: Path
) -> None:
    project = Project(tmp_path)
    case = CASE.replace("STEP", "head -c 3000000 /dev/urandom > made.bin")
    project.write({"eval.yaml": "name: x\n", "a.yaml": case})
    start_small_worker(cluster)
    outcome = project.run(*on(cluster))
    assert outcome.exit_code == 3, outcome.stderr
    assert "no worker has been left" in outcome.stderr
    assert "No space left on device" in outcome.stderr
