"""`skillup view`: what is served, while a run goes on, and how it ends."""

from __future__ import annotations

import signal
import time
from pathlib import Path

import pytest

from tests.support.large_runs import write_large_run
from tests.support.project import Project
from tests.support.viewing import PATIENCE, Viewer, viewing

SLOW = {
    "s/eval.yaml": "name: s\n",
    "s/c.yaml": """
        input: {turns: [One., Two., Three.]}
        assertions: [{contains: y}]
        scripted:
          - {when: One, say: y}
          - {when: Two, steps: [{run: "until [ -e $GO ]; do sleep 0.1; done"}], say: y}
          - {say: y}
    """,
}


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """A workspace with one run."""
    found = Project(tmp_path)
    write_large_run(found.root / ".skillup/runs/a", 2, turns=1)
    return found


def _until(viewer: Viewer, run: str, status: str) -> dict[str, object]:
    """The first row of the run, once it has that status."""
    for _ in range(PATIENCE * 10):
        row: dict[str, object] = viewer.get(f"api/runs/{run}/index.json").data["rows"][0]
        if row["status"] == status == "PASS":
            return row
        if row["status"] == status and row["reason"] == "turn 2 is running":
            return row
        time.sleep(0.1)
    raise AssertionError(f"it is not {status}: {row}")


@pytest.mark.slow
def test_a_run_is_shown_while_it_goes_on(tmp_path: Path) -> None:
    project = Project(tmp_path).write(SLOW)
    go = tmp_path / "go"
    project.write({"engines/slow.yaml": f"engine: scripted\nenv: {{GO: {go}}}\n"})
    with project.start("run", "s", "-e", "slow", "--out", "runs/r") as running:
        while not (project.root / "runs/r/run.json").exists():
            assert running.poll() is None, running.communicate()
            time.sleep(0.05)
        with viewing(project, "runs/r") as viewer:
            row = _until(viewer, "r", "RUNNING")
            assert row["turns"] == [{"status": "completed", "ok": None, "unjudged": True}]
            index = viewer.get("api/runs/r/index.json").data
            assert index["run"]["running"] is True
            assert index["run"]["finished"] is False
            assert viewer.get("api/runs").data["runs"][0]["status"] == "running"
            so_far = viewer.get("api/runs/r/trials/1.json").data
            assert [turn["status"] for turn in so_far["turns"]][:1] == ["completed"]
            with viewer.events("api/runs/r/events") as lines:
                assert next(lines).startswith("retry:")
                go.touch()
                assert "event: changed" in lines
            assert _until(viewer, "r", "PASS")["score"] == 1.0
            running.wait(PATIENCE)
            index = viewer.get("api/runs/r/index.json").data
            assert index["run"]["running"] is False
            assert index["run"]["finished"] is True
            assert len(viewer.get("api/runs/r/trials/1.json").data["turns"]) == 3


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nowhere"], "there is no run nowhere"),
        (["--port", "99999"], "65535"),
        (["empty"], "holds no runs"),
        (["file.txt"], "is no run"),
    ],
)
def test_wrong_uses_are_refused(project: Project, arguments: list[str], said: str) -> None:
    project.write({"empty/x": "", "file.txt": ""})
    outcome = project.run("view", "--no-open", *arguments)
    assert outcome.exit_code == 2
    assert said in outcome.stderr
    assert outcome.stdout == ""


def test_ctrl_c_ends_it_at_once_and_without_a_word(project: Project) -> None:
    with viewing(project) as viewer, viewer.events("api/runs/a/events") as lines:
        assert next(lines).startswith("retry:")
        viewer.process.send_signal(signal.SIGINT)
        out, err = viewer.process.communicate(timeout=PATIENCE)
    assert viewer.process.returncode == 0
    assert out == ""
    assert "Traceback" not in err
