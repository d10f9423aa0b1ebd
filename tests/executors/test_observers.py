"""Whoever watches a run may fail: the run ends, and no trial answers for it."""

from __future__ import annotations

import errno
import os
from copy import copy
from pathlib import Path
from typing import Any

import anyio
import psutil
import pytest

from skillup.errors import SkillupError
from skillup.executors.local import Stepwise
from skillup.executors.run import Run
from skillup.schema.record import Record
from skillup.store import RunDirectory
from tests.support.plans import Quiet, a_plan, options_at, run_plan

QUICK = {"scripted": [{"say": "hi"}], "assertions": [{"contains": "hi"}]}
ENDLESS = {"scripted": [{"say": "hi", "steps": [{"run": "true"}], "misbehave": {"hang": True}}]}
PIPE = OSError(errno.EPIPE, os.strerror(errno.EPIPE))
FULL = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


class Failing(Quiet):
    """Fails whenever `method` is called; of events, with those of `kind`."""

    def __init__(self, method: str, failure: BaseException, kind: str = "") -> None:
        def fail(*about: Any) -> None:
            if not kind or about[0].kind == kind:
                raise copy(failure)

        setattr(self, method, fail)


def children() -> set[int]:
    return {child.pid for child in psutil.Process().children(recursive=True)}


def finished(path: Path) -> dict[str, Record]:
    run = RunDirectory.open(path)
    return {job: run.read_record(job) for job in run.finished_jobs()}


@pytest.mark.parametrize(
    ("method", "kind", "failure"),
    [
        ("trial_started", "", PIPE),
        ("trial_event", "preparing", FULL),
        ("trial_event", "item", SystemExit(1)),
        ("trial_event", "turn_ended", ValueError("a defect")),
        ("trial_finished", "", FULL),
    ],
)
def test_the_run_ends_with_an_error_that_says_where(
    tmp_path: Path, method: str, kind: str, failure: BaseException
) -> None:
    plan = a_plan(tmp_path, {"a": ENDLESS, "b": ENDLESS, "c": QUICK})
    before = children()
    with pytest.raises(SkillupError) as ended:
        run_plan(plan, tmp_path / "run", Failing(method, failure, kind), parallel=3)
    assert f"{type(failure).__name__}: {failure}" in ended.value.message
    assert "test_observers.py:" in ended.value.message
    assert ended.value.hint is not None
    assert ended.value.hint.endswith("--resume")
    assert children() <= before
    records = finished(tmp_path / "run")
    assert {record.case_id for record in records.values()} <= {"c"}
    assert all(record.first_error() is None for record in records.values())
    if method == "trial_finished":
        assert records  # it is on the disk before anybody sees it


def test_what_had_finished_is_kept_and_the_rest_runs_when_the_run_is_resumed(
    tmp_path: Path,
) -> None:
    plan = a_plan(tmp_path, {"a": QUICK, "b": QUICK, "c": QUICK})
    with pytest.raises(SkillupError):
        run_plan(plan, tmp_path / "run", Failing("trial_finished", PIPE), parallel=1)
    run = RunDirectory.open(tmp_path / "run")
    first = finished(tmp_path / "run")
    assert [record.case_id for record in first.values()] == ["a"]
    grades = run_plan(plan, tmp_path / "run")
    assert [grade.status for grade in grades.values()] == ["PASS"] * 3
    assert first.items() <= finished(tmp_path / "run").items()
    started = [event["job"] for event in run.events() if event["event"] == "trial_started"]
    assert [started.count(job) for job in first] == [1]
    assert len(set(started)) == 3


BRANCHES = [{"name": "x", "turns": ["x"]}, {"name": "y", "turns": ["y"]}]
SHARING = {"input": {"turns": [{"content": "hi", "branches": BRANCHES}]}, **QUICK}


@pytest.mark.parametrize(("method", "kind"), [("trial_event", "item"), ("trial_finished", "")])
def test_trials_that_share_turns_end_in_the_same_way(
    tmp_path: Path, method: str, kind: str
) -> None:
    plan = a_plan(tmp_path, {"a": SHARING}, trials=2)
    before = children()
    with pytest.raises(SkillupError, match="Broken pipe"):
        run_plan(plan, tmp_path / "run", Failing(method, PIPE, kind), parallel=3)
    assert children() <= before
    assert not (tmp_path / "run" / "scratch").exists()
    grades = run_plan(plan, tmp_path / "run")
    assert [grade.status for grade in grades.values()] == ["PASS"] * 4


def test_where_trials_are_asked_for_one_by_one_the_one_that_runs_ends(tmp_path: Path) -> None:
    plan = a_plan(tmp_path, {"a": ENDLESS, "b": QUICK})
    failing = Failing("trial_event", ValueError("a defect"), "item")

    async def run(directory: RunDirectory) -> None:
        steps = Stepwise(Run(plan, directory, options_at(tmp_path / "run"), failing, {}))
        await steps.open()
        for job in plan.jobs:
            with pytest.raises(SkillupError, match="a defect"):
                await steps.run(job)

    before = children()
    with RunDirectory.create(tmp_path / "run", {}) as directory:
        anyio.run(run, directory)
        assert directory.finished_jobs() == set()
    assert children() <= before
