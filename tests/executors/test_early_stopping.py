"""Which trials `--until-decided` still needs."""

from __future__ import annotations

from pathlib import Path

import pytest

from skillup.executors.stopping import EarlyStopping
from skillup.plan import Job, Plan
from skillup.schema.grade import CaseStatus
from tests.support.plans import a_plan
from tests.support.stored import a_grade


def end(deciding: EarlyStopping, job: Job, status: CaseStatus) -> bool:
    """The trial has ended so; whether that has decided its case."""
    return deciding.count(job, a_grade().model_copy(update={"status": status})) is not None


def needed(deciding: EarlyStopping, plan: Plan) -> list[str]:
    return [f"{j.loaded.case.id}{j.trial}" for j in plan.jobs if deciding.needs(j)]


@pytest.mark.parametrize(
    ("ended", "decides"),
    [
        # The quick ones fail; whether they decide has to wait for the slow first one.
        ([(2, "FAIL"), (3, "FAIL"), (4, "FAIL"), (1, "FAIL")], (3, "below")),
        # Errors and skips say nothing.
        ([(1, "ERROR"), (2, "FAIL"), (3, "SKIP"), (4, "FAIL"), (5, "ERROR")], (2, "undecided")),
    ],
)
def test_trials_are_looked_at_in_their_order_and_not_as_they_end(
    tmp_path: Path, ended: list[tuple[int, CaseStatus]], decides: tuple[int, str]
) -> None:
    plan = a_plan(tmp_path, {"a": {}}, trials=6)
    deciding = EarlyStopping(plan.jobs, {})
    *before, last = (end(deciding, plan.jobs[trial - 1], status) for trial, status in ended)
    assert (any(before), last) == (False, decides[1] != "undecided")
    (test,) = deciding.tests.values()
    assert (test.about()["trials"], test.side) == decides


def test_a_decided_case_is_held_for_an_undecided_one_that_depends_on_it(tmp_path: Path) -> None:
    cases = {"a": {}, "b": {"depends_on": ["a"]}, "c": {"depends_on": ["b"]}}
    plan = a_plan(tmp_path, cases, trials=4)
    deciding = EarlyStopping(plan.jobs, {})
    by_case = {name: [j for j in plan.jobs if j.loaded.case.id == name] for name in cases}
    for name in ("a", "b"):
        for job in by_case[name][:3]:
            end(deciding, job, "FAIL")
    assert deciding.needs(by_case["a"][3])  # for c, by way of b
    for job in by_case["c"][:3]:
        end(deciding, job, "FAIL")
    assert needed(deciding, plan) == []


def test_the_threshold_is_what_the_run_has_recorded_of_each_suite(tmp_path: Path) -> None:
    edited = "name: gated\ngates: {min_pass_rate: 0.9}\n"
    gated = a_plan(tmp_path / "x", {"a": {}}, suite=edited)
    plain = a_plan(tmp_path / "y", {"a": {}})
    suites = {"gated": {"gates": {"min_pass_rate": 0.5}}, "s": {"gates": {}}}
    tests = EarlyStopping([*gated.jobs, *plain.jobs], {"suites": suites}).tests
    assert [test.threshold for test in tests.values()] == [0.5, 0.8]
    asked = {"suites": suites, "request": {"pass_rate": 0.6}}
    (test,) = EarlyStopping(gated.jobs, asked).tests.values()
    assert test.threshold == 0.6
