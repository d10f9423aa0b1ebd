"""Budgets and decisions are the client's: they end a run on a cluster as they end one here."""

from __future__ import annotations

import pytest

from tests.support.dask_cluster import DaskCluster
from tests.support.project import Outcome, Project

PASS = "input: {prompt: hi}\nassertions: [{contains: fine}]\nscripted: [{say: fine}]\n"
FAIL = PASS.replace("say: fine", "say: bad")
PRICED = "engine: scripted\nprices: {input: 1000, output: 1000}\n"  # 0.12 USD a turn


@pytest.fixture
def there(cluster: DaskCluster) -> tuple[str, ...]:
    """Two workers with a place each; how to hold a run there."""
    cluster.start_worker("one")
    cluster.start_worker("two")
    return ("--executor", "dask", "--scheduler", cluster.address)


def run(project: Project, *arguments: str) -> Outcome:
    return project.run("run", ".", "--json", *arguments)


def test_a_spent_budget_starts_no_more_trials_there_and_the_run_can_go_on(
    project: Project, there: tuple[str, ...]
) -> None:
    project.write(
        {"eval.yaml": "name: d\n", "a.yaml": PASS, "b.yaml": PASS, "engines/priced.yaml": PRICED}
    )
    budget = ("-e", "priced", "--trials", "3", "--max-cost-usd", "0.3")
    stopped = run(project, *budget, *there, "--out", "out")
    # A third trial fits beside two that took 0.24 USD; a fourth is not begun.
    assert (stopped.exit_code, stopped.data["summary"]["pass"]) == (3, 3), stopped.stderr
    assert stopped.data["stopped"]["message"] == "the budget of 0.30 USD is spent (0.36 USD)"
    assert len(stopped.data["not_run"]) == 3
    assert stopped.data["finished"] is False

    resumed = project.run("run", "--resume", "out", "--max-cost-usd", "0", *there, "--json")
    assert len(resumed.data["not_run"]) == 3
    more = ("--max-cost-usd", "1")
    finished = project.run("run", "--resume", "out", *more, *there, "--json")
    assert (finished.exit_code, finished.data["summary"]["pass"]) == (0, 6), finished.stderr
    assert finished.data["stopped"] is None


def test_other_limits_and_decisions_hold_there_too(
    project: Project, there: tuple[str, ...]
) -> None:
    project.write({"eval.yaml": "name: d\n", "never.yaml": FAIL})
    late = run(project, *there, "--time-limit", "0.001", "--out", "late")
    assert late.data["stopped"]["kind"] == "time_limit"
    assert late.data["cases"] == []

    failed = run(project, *there, "--trials", "9", "--max-fail", "2", "--out", "failed")
    assert (failed.exit_code, failed.data["stopped"]["kind"]) == (1, "max_fail"), failed.stderr
    # Two, and at most the one that ran beside the second.
    assert 2 <= len(failed.data["cases"]) <= 3

    decided = run(project, *there, "--trials", "20", "--until-decided", "--out", "decided")
    (about,) = decided.data["analysis"]["cases"]
    assert about["decision"]["verdict"] == "below"
    held, saved = len(decided.data["cases"]), len(decided.data["not_needed"])
    assert held + saved == 20
    # Trials are looked at in their order, so later ones may end before an early one that is slow.
    assert about["decision"]["trials"] <= held < 20
    assert decided.data["not_run"] == []
