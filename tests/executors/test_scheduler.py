"""Which trials begin next, and how many at once."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from skillup.executors.scheduler import Scheduler, units_of
from skillup.plan import Job
from tests.support.plans import a_plan
from tests.support.project import Project

BRANCHES = [{"name": "x", "turns": ["x"]}, {"name": "y", "turns": ["y"]}]
BOTH: Any = ("with_skill", "without_skill")


def run(
    jobs: Sequence[Job],
    places: int,
    length: Callable[[Job], int] = lambda _: 1,
    has_room: Callable[[int], bool] = lambda _: True,
) -> tuple[list[str], int]:
    """The order in which jobs began, `length` moments each; and the most that ran at once."""
    order = {job.id: place for place, job in enumerate(jobs)}
    scheduler = Scheduler([(job,) for job in reversed(jobs)], order, places, has_room)
    began: list[str] = []
    running: list[list[Any]] = []
    most = 0
    while running or not scheduler.empty:
        while (unit := scheduler.next()) is not None:
            (job,) = unit
            began.append(f"{job.profile.name}:{job.loaded.case.id}{job.trial}")
            running.append([length(job), unit])
        most = max(most, len(running))
        for one in list(running):
            one[0] -= 1
            if one[0] <= 0:
                running.remove(one)
                scheduler.release(one[1])
    return began, most


def slow(case: str) -> Callable[[Job], int]:
    return lambda job: 20 if case in (job.loaded.case.id, job.profile.name) else 1


@pytest.mark.parametrize(
    ("cases", "plan", "places", "length", "began"),
    [
        ("abc", {"trials": 2}, 2, slow(""), "a1 b1 c1 a2 b2 c2"),  # each case before the next trial
        ("ab", {"trials": 2, "variants": BOTH}, 1, slow(""), "a1 a1 b1 b1 a2 a2 b2 b2"),
        ("abc", {"engines": ("q", "p")}, 2, slow("q"), "q:a1 p:a1 p:b1 p:c1 q:b1 q:c1"),
    ],
)
def test_each_case_before_its_next_trial_and_no_engine_takes_all_places(
    tmp_path: Path, cases: str, plan: Any, places: int, length: Any, began: str
) -> None:
    jobs = a_plan(tmp_path, {name: {} for name in cases}, **plan).jobs
    expected = [name if ":" in name else f"p:{name}" for name in began.split()]
    assert run(jobs, places, length)[0][: len(expected)] == expected


def test_one_case_alone_may_have_all_places_but_waits_where_there_is_no_room(
    tmp_path: Path,
) -> None:
    jobs = a_plan(tmp_path, {"a": {}}, trials=5).jobs
    counts: list[int] = []

    def has_room(running: int) -> bool:
        counts.append(running)
        return running < 2

    assert run(jobs, 3, slow("a"))[1] == 3
    began, most = run(jobs, 4, slow("a"), has_room)
    assert (len(began), most) == (5, 2)
    assert 0 not in counts  # the only one never waits
    assert run(jobs, 4, slow("a"), lambda _: False)[1] == 1


def test_what_depends_on_others_begins_when_they_have_ended_however_they_did(
    tmp_path: Path,
) -> None:
    cases = {"a": {"depends_on": ["b", "c"]}, "b": {"depends_on": ["c"]}, "c": {}, "d": {}}
    began, _ = run(a_plan(tmp_path, cases, trials=2).jobs, 4, lambda job: job.trial)
    assert " ".join(name[2:] for name in began) == "c1 d1 c2 d2 b1 a1 b2 a2"
    jobs = a_plan(tmp_path, cases).jobs
    rest = [job for job in jobs if job.loaded.case.id != "c"]  # it has finished before
    assert [name[2:] for name in run(rest, 4)[0]] == ["b1", "d1", "a1"]
    assert [unit[0].id for unit in units_of(jobs)] == [job.id for job in jobs]


@pytest.mark.slow
def test_what_it_takes_to_choose_grows_with_the_jobs_and_not_with_their_square(
    tmp_path: Path,
) -> None:
    """F16: 4,000 cases cost three seconds."""

    def lines_for(count: int) -> int:
        jobs = a_plan(tmp_path / str(count), {f"c{n}": {} for n in range(count)}).jobs
        lines = 0

        def trace(frame: Any, event: str, _: Any) -> Any:
            nonlocal lines
            if not frame.f_code.co_filename.endswith("scheduler.py"):
                return None
            lines += event == "line"
            return trace

        before = sys.gettrace()
        sys.settrace(trace)
        try:
            began, _ = run(jobs, 4)
        finally:
            sys.settrace(before)
        assert len(began) == count
        return lines

    assert 0 < lines_for(200) < 3 * lines_for(100)


PASS = "input: {prompt: hi}\nassertions: [{contains: fine}]\nscripted: [{say: fine}]\n"
FAIL = PASS.replace("say: fine", "say: bad")
ERROR = PASS.replace("say: fine", "say: fine, misbehave: {exit_code: 1}")


@pytest.mark.parametrize(("first", "status"), [(FAIL, "FAIL"), (ERROR, "ERROR")])
def test_what_depends_on_a_case_that_did_not_pass_is_skipped_down_the_line(
    project: Project, first: str, status: str
) -> None:
    after = {name: f"depends_on: [{on}]\n{PASS}" for name, on in ("ab", "bc")}
    project.write({"eval.yaml": "name: d\n", "c.yaml": first, "d.yaml": PASS})
    project.write({f"{name}.yaml": text for name, text in after.items()})
    project.write({"e.yaml": "id: group/e\n" + FAIL, "f.yaml": "depends_on: [group/e]\n" + PASS})
    cases = {case["case_id"]: case for case in project.run_json(".")["cases"]}
    assert cases["f"]["reason"] == "depends on group/e, which ended as FAIL"
    found = {name: case["status"] for name, case in cases.items() if len(name) == 1}
    assert found == {"f": "SKIP", "c": status, "b": "SKIP", "a": "SKIP", "d": "PASS"}
