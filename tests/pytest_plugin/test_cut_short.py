"""A pytest with workers that is killed before it has made one run of what they held."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

import psutil
import pytest

from tests.support.project import GUARD_SECONDS, Outcome, Project

Pytest = Callable[..., Outcome]

PASSES = "input: {prompt: go}\nassertions: [{contains: done}]\nscripted: [{say: done}]\n"
KILLS = """
    import os, signal
    from skillup.cli import joining_workers

    calls = 0
    inner = joining_workers.%(name)s

    def killing(*arguments):
        global calls
        calls += 1
        if calls == %(call)d:
            os.kill(os.getpid(), signal.%(signal)s)
        return inner(*arguments)

    joining_workers.%(name)s = killing
    """


@pytest.fixture
def suite(project: Project) -> Project:
    """Six cases that pass, of which others depend on one."""
    return project.write(
        {
            "cases/eval.yaml": "name: demo\n",
            **{f"cases/a{n}.yaml": "depends_on: [z]\n" + PASSES for n in range(5)},
            "cases/z.yaml": PASSES,
        }
    )


@pytest.mark.parametrize(
    ("name", "call", "signal"),
    [
        ("_opened", 1, "SIGKILL"),
        ("_moved", 1, "SIGKILL"),
        ("_moved", 4, "SIGKILL"),
        ("_moved", 3, "SIGINT"),
        ("_remove", 1, "SIGKILL"),
    ],
)
def test_it_is_finished_when_the_run_is_gone_on_with(
    suite: Project, run_pytest: Pytest, name: str, call: int, signal: str
) -> None:
    suite.write({"conftest.py": KILLS % {"name": name, "call": call, "signal": signal}})
    run_pytest("--skillup", "cases", "-n", "2")
    run = suite.latest_run()
    assert (run / "workers").is_dir()
    place = f".skillup/runs/{run.name}"
    for told in (
        suite.run("show"),
        suite.run("report", run.name),
        suite.run("judge", "last"),
        suite.run("judge", place),
    ):
        assert told.exit_code == 2, told.stdout
        assert f"`skillup run --resume {place}` makes one run" in told.stderr
    again = suite.run("run", "--resume", "last")
    assert again.exit_code == 0, again.stderr
    assert not (run / "workers").exists()
    result: Any = json.loads((run / "result.json").read_text())
    assert (result["summary"]["pass"], result["finished"]) == (6, True)
    events = Counter((event["event"], event.get("job")) for event in suite.journal())
    for event in ("trial_started", "trial_finished"):
        told_of = {job: n for (what, job), n in events.items() if what == event}
        assert set(told_of.values()) == {1}, told_of
        assert len(told_of) == 6
    assert suite.run("show", "last", "*").exit_code == 0


def test_its_workers_end_and_what_they_had_finished_is_kept(
    suite: Project, at_work: Callable[..., Any]
) -> None:
    with at_work("--skillup", "cases", "-n", "2") as (process, agent):
        run = suite.latest_run()
        deadline = time.monotonic() + GUARD_SECONDS
        while len(list(run.glob("workers/*/trials/*/*/*/*/grading.json"))) < 4:
            assert time.monotonic() < deadline
            time.sleep(0.02)
        process.kill()
    suite.write({"cases/a.yaml": PASSES})
    again = suite.run("run", "--resume", "last")
    while "is being written" in again.stderr:
        assert time.monotonic() < deadline
        time.sleep(0.2)
        again = suite.run("run", "--resume", "last")
    assert again.exit_code == 0, again.stderr
    assert not psutil.pid_exists(agent)
    assert not (run / "workers").exists()
    started = Counter(e["job"] for e in suite.journal() if e["event"] == "trial_started")
    assert json.loads((run / "result.json").read_text())["summary"]["pass"] == 7
    assert sum(started.values()) <= 9  # those that were under way are held anew
