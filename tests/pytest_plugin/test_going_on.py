"""`skillup run --resume` with what a session of pytest has left: all it selected, and no more."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.project import Outcome, Project

Pytest = Callable[..., Outcome]

PASSES = "input: {prompt: go}\nassertions: [{contains: done}]\nscripted: [{say: done}]\n"
NEEDS_A = "depends_on: [a]\n" + PASSES
BREAKS_OFF = """
    input: {prompt: go}
    assertions: [{contains: done}]
    scripted: [{steps: [{run: 'kill -ALRM $(cat "%s"); sleep 300'}], say: done}]
    """
TIME_OUT = """
    import os, pathlib, signal
    import pytest

    def timed_out(number, frame):
        pytest.fail("it took too long")

    def pytest_runtest_setup(item):
        if item.name.startswith("a["):
            signal.signal(signal.SIGALRM, timed_out)
            pathlib.Path(%r).write_text(str(os.getpid()))
    """


def result_of(project: Project) -> Any:
    return json.loads((project.latest_run() / "result.json").read_text())


@pytest.mark.slow
def test_what_needs_a_trial_that_was_broken_off_is_not_run_either(
    project: Project, run_pytest: Pytest, tmp_path: Path
) -> None:
    worker = tmp_path / "worker"
    project.write(
        {
            "conftest.py": TIME_OUT % str(worker),
            "cases/eval.yaml": "name: demo\n",
            "cases/a.yaml": BREAKS_OFF % worker,
            "cases/adep.yaml": NEEDS_A,
            "cases/adepdep.yaml": "depends_on: [adep]\n" + PASSES,
        }
    )
    told = run_pytest("--skillup", "cases", "-rs").stdout
    assert "it took too long" in told
    assert "depends on a, which was not run" in told
    assert "depends on adep, which was not run" in told
    result = result_of(project)
    assert (result["cases"], result["finished"]) == ([], False)
    assert result["not_run"] == [f"{c}/scripted/with_skill/1" for c in ("a", "adep", "adepdep")]
    project.write({"cases/a.yaml": PASSES})
    again = project.run("run", "--resume", "last")
    assert again.exit_code == 0, again.stderr
    assert result_of(project)["summary"]["pass"] == 3


@pytest.mark.slow
@pytest.mark.parametrize(
    "selected",
    [
        ["--skillup-trials", "3", "cases/eval.yaml::a[scripted-2]"],
        ["--skillup-engine", "one", "--skillup-engine", "two", "-k", "two and cases"],
        ["--skillup-baseline", "-k", "without_skill"],
        ["--skillup", "other", "-k", "other"],
        ["--skillup", "broken", "--continue-on-collection-errors", "-n", "2"],
    ],
)
def test_it_holds_what_pytest_selected_and_no_more(
    project: Project, run_pytest: Pytest, selected: list[str]
) -> None:
    project.write(
        {
            "cases/eval.yaml": "name: demo\n",
            "cases/a.yaml": PASSES,
            "other/eval.yaml": "name: other\n",
            "other/a.yaml": PASSES,
            "other/only.yaml": PASSES,
            "broken/eval.yaml": "name: broken\n",
            "broken/a.yaml": "input: {promt: go}\n",
            "engines/one.yaml": "engine: scripted\n",
            "engines/two.yaml": "engine: scripted\n",
        }
    )
    run_pytest("--skillup", "cases", *selected)
    run = project.latest_run()
    before = result_of(project)
    assert before["finished"] is True
    again = project.run("run", "--resume", "last")
    assert again.exit_code == 0, again.stderr
    jobs = json.loads((run / "run.json").read_text())["jobs"]
    after = result_of(project)
    assert len(after["cases"]) == len(before["cases"]) == len(jobs)
    assert after["not_run"] == []
