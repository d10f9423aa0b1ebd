"""`skillup judge` where records are damaged, and where it is killed."""

from __future__ import annotations

import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.children import is_alive
from tests.support.exported import exported
from tests.support.project import Project, wait_until
from tests.support.stored import edit_stored

JOB = "a/scripted/with_skill/1"

CASE = """
    input: {turns: [{content: one, assertions: [{contains: first}]}, two]}
    scripted: [{turn: 1, say: first}, {turn: 2, say: second}]
    """


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of two cases."""
    project = Project(tmp_path_factory.mktemp("finished"))
    project.write({"cases/eval.yaml": "name: s\n", "cases/a.yaml": CASE, "cases/b.yaml": CASE})
    assert project.run("run", "cases", "--out", "run").exit_code == 0
    return project.root


@pytest.fixture
def project(finished: Path, project: Project) -> Project:
    return project.holding(finished)


def update(**fields: Any) -> Callable[[dict[str, Any]], object]:
    return lambda record: record.update(fields)


@pytest.mark.parametrize(
    ("edit", "says"),
    [
        (update(case={}), "the case in its record cannot be read"),
        (update(case=None), "its record is damaged"),
    ],
)
def test_one_record_that_cannot_be_judged_does_not_keep_the_others_from_it(
    project: Project, edit: Callable[[dict[str, Any]], object], says: str
) -> None:
    edit_stored(project.root / "run", JOB, edit)
    outcome = project.run("judge", "run", "--json")
    assert outcome.exit_code == 3, outcome.stderr
    assert (outcome.data["damaged"], outcome.data["not_run"]) == (1, 0)
    assert [case["job_id"] for case in outcome.data["cases"]] == ["b/scripted/with_skill/1"]
    assert outcome.stderr.startswith(f"note: {JOB}: {says}")


def test_a_single_record_without_a_case_can_be_judged_by_another_one(project: Project) -> None:
    edit_stored(project.root / "run", JOB, update(case={}))
    record = str(exported(project.root / "run") / "trials" / JOB / "record.json")
    alone = project.run("judge", record)
    assert (alone.exit_code, "--cases" in alone.stderr) == (2, True)
    by_another = project.run("judge", record, "--cases", "cases/a.yaml")
    assert by_another.exit_code == 0, by_another.stderr


# `skillup judge`, killed while a script judges: the next start ends and removes what is left.

# It writes its own number and that of a child that hides from it; both ignore requests to end.
SCRIPT = """#!/bin/sh
[ -f "$EVAL_SUITE_ROOT/slow" ] || exit 0
trap '' TERM INT
(trap '' TERM INT HUP; exec sleep 900) &
echo $$ $! > "$EVAL_SUITE_ROOT/started.new"
mv "$EVAL_SUITE_ROOT/started.new" "$EVAL_SUITE_ROOT/started"
sleep 900
"""


@pytest.mark.slow
def test_the_next_start_ends_what_a_killed_judging_left(tmp_path: Path) -> None:
    project = Project(tmp_path)
    case = "{input: {prompt: x}, assertions: [{script: s/check.sh}], scripted: [{say: ok}]}"
    project.write(
        {"cases/eval.yaml": "name: s\n", "cases/a.yaml": case, "cases/s/check.sh": SCRIPT}
    )
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    env = {"TMPDIR": str(temporary)}
    assert project.run("run", "cases", "--out", "run", env=env).exit_code == 0
    slow, started = project.root / "cases" / "slow", project.root / "cases" / "started"
    slow.touch()
    with project.start("judge", "run", env=env) as judging:
        wait_until(started.exists, judging)
        judging.send_signal(signal.SIGKILL)
        judging.wait()
    left = [int(pid) for pid in started.read_text().split()]
    assert all(is_alive(pid) for pid in left)
    slow.unlink()

    outcome = project.run("judge", "run", env=env)

    assert outcome.exit_code == 0, outcome.stderr
    assert not any(is_alive(pid) for pid in left)
    assert not list((project.home / ".cache" / "skillup" / "processes").glob("*.json"))
