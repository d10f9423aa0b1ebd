"""`run --shard` and `merge`: parts of a plan that ran apart are one run."""

from __future__ import annotations

from pathlib import Path

import pytest

from skillup.app.planning import shard_of
from skillup.errors import UsageError
from skillup.store import RunDirectory
from tests.support.plans import a_plan
from tests.support.project import Project

CASE = "input: {prompt: hi}\nassertions: [{contains: fine}]\nscripted: [{say: SAY}]\n"
BRANCHED = """
    input:
      turns:
        - content: one
          branches: [{name: left, turns: [two]}, {name: right, turns: [three]}]
    assertions: [{contains: fine}]
    scripted: [{say: fine}]
    """


@pytest.fixture
def sharded(project: Project) -> Project:
    """Three shards of a suite with a failing case, branches and a dependency."""
    project.write(
        {
            "eval.yaml": "name: x\n",
            "a.yaml": CASE.replace("SAY", "fine"),
            "b.yaml": CASE.replace("SAY", "bad"),
            "c.yaml": "depends_on: [a]\n" + CASE.replace("SAY", "fine"),
            "d.yaml": BRANCHED,
        }
    )
    for index in "123":
        project.run("run", ".", "--trials", "2", "--shard", f"{index}/3", "--out", f"s{index}")
    return project


def jobs(project: Project, run: str, name: str = "jobs") -> list[str]:
    with RunDirectory.open(project.root / run) as directory:
        return list(directory.run_info()[name])


def statuses(outcome_data: dict[str, list[dict[str, str]]]) -> list[tuple[str, str]]:
    return [(case["case_id"], case["status"]) for case in outcome_data["cases"]]


@pytest.mark.slow
def test_shards_that_are_merged_are_the_run_that_one_machine_would_have_made(
    sharded: Project,
) -> None:
    whole = sharded.run("run", ".", "--trials", "2", "--out", "whole", "--json")
    merged = sharded.run("merge", "s1", "s2", "s3", "--out", "all", "--report", "junit", "--json")
    assert (merged.exit_code, whole.exit_code) == (1, 1), merged.stderr
    assert statuses(merged.data) == statuses(whole.data)
    assert jobs(sharded, "all") == jobs(sharded, "whole")
    assert (sharded.root / "all/junit.xml").is_file()
    again = sharded.run("judge", "all", "--json").data
    assert not [case for case in again["cases"] if case.get("changed")]
    assert sharded.run("compare", "whole", "all").exit_code == 0
    # Each trial is in one shard with those that it needs.
    parts = [set(jobs(sharded, f"s{index}")) for index in "123"]
    assert sorted(job for part in parts for job in part) == sorted(jobs(sharded, "s1", "planned"))
    for part in parts:
        for trial in "12":
            names = {job.split("/scripted")[0] for job in part if job.endswith(f"/{trial}")}
            assert len(names & {"a", "c"}) != 1
            assert len(names & {"d/left", "d/right"}) != 1
    # What a missing shard has was not run, and the merged run goes on.
    merged = sharded.run("merge", "s1", "s3", "--out", "two", "--json")
    assert (merged.exit_code, set(merged.data["not_run"])) == (3, set(jobs(sharded, "s2")))
    resumed = sharded.run("run", "--resume", "two", "--json")
    assert (resumed.exit_code, resumed.data["not_run"]) == (1, []), resumed.stderr


@pytest.mark.slow
def test_what_is_no_part_of_the_same_run_is_refused(sharded: Project) -> None:
    sharded.run("run", ".", "--trials", "2", "--shard", "1/3", "--out", "again")
    twice = sharded.run("merge", "s1", "again", "--out", "all")
    assert twice.exit_code == 2
    assert "was run in" in twice.stderr
    sharded.write({"b.yaml": CASE.replace("SAY", "fine")})
    sharded.run("run", ".", "--trials", "2", "--shard", "2/3", "--out", "edited")
    other = sharded.run("merge", "s1", "edited", "--out", "all")
    assert other.exit_code == 2
    assert "they differ in case_digests\n" in other.stderr
    assert not (sharded.root / "all").exists()
    same = sharded.run("merge", "s1", "s1", "s2", "s3", "--out", "all")
    assert same.exit_code == 1, same.stderr


@pytest.mark.parametrize("count", [1, 2, 3, 7])
def test_shards_have_all_trials_once_and_are_of_one_size(tmp_path: Path, count: int) -> None:
    plan = a_plan(tmp_path, {name: {} for name in "abcde"}, trials=3)
    parts = [shard_of(plan, f"{n}/{count}", by_case=False).jobs for n in range(1, count + 1)]
    assert sorted(job.id for part in parts for job in part) == sorted(job.id for job in plan.jobs)
    sizes = [len(part) for part in parts]
    assert max(sizes) - min(sizes) <= 1
    by_case = [shard_of(plan, f"{n}/{count}", by_case=True).jobs for n in range(1, count + 1)]
    assert sum(len({job.loaded.case.id for job in part}) for part in by_case) == 5


@pytest.mark.parametrize("shard", ["0/3", "4/3", "x", "1", "1/0", "-1/3"])
def test_a_shard_that_does_not_exist_is_refused(tmp_path: Path, shard: str) -> None:
    with pytest.raises(UsageError, match="no part of the run"):
        shard_of(a_plan(tmp_path, {"a": {}}), shard, by_case=False)
