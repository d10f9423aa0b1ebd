"""`skillup compare` from the outside: two nights of a suite."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.pages import page_of
from tests.support.project import Outcome, Project

pytestmark = pytest.mark.indexed

SUITE = """
    name: demo
    cases: {{files: ['cases/*.yaml']}}
    gates: {gates}
    """
CASE = """
    input: {{turns: [one]}}
    assertions: [{{contains: hi}}, {{contains: there}}]
    scripted: [{{say: "{say}"}}]
    """
REFUSED = """
    input: {turns: [one]}
    assertions: [{contains: hi}]
    scripted: [{say: x, misbehave: {error: auth}}]
    """


def night(project: Project, *options: str, gates: str = "{}", **cases: str) -> Any:
    """A run whose agent says this in each case; `refused` is an error."""
    files = {
        f"cases/{name}.yaml": REFUSED if say == "refused" else CASE.format(say=say)
        for name, say in cases.items()
    }
    project.write({"eval.yaml": SUITE.format(gates=gates), **files})
    return project.run("run", ".", "--json", *options).data


def compare(project: Project, *arguments: str) -> Outcome:
    """`skillup compare ARGUMENTS`."""
    return project.run("compare", *arguments)


def changes(outcome: Outcome) -> dict[str, str]:
    """What became of each case."""
    return {case["case_id"]: case["change"] for case in outcome.data["cases"]}


def test_the_last_run_is_compared_with_the_one_before(project: Project) -> None:
    a = night(project, steady="hi there", broke="hi there", mended="no", worse="hi there")
    b = night(project, steady="hi there", broke="no", mended="hi there", worse="refused", new="hi")
    outcome = compare(project, "--json")
    assert outcome.exit_code == 0
    assert changes(outcome) == {
        "broke": "newly_failing",
        "mended": "newly_passing",
        "steady": "still_passing",
        "worse": "not_run",
        "new": "only_in_b",
    }
    assert (outcome.data["a"]["run_id"], outcome.data["b"]["run_id"]) == (a["run_id"], b["run_id"])
    assert outcome.data["verdicts"]["p"] == 1


def test_people_read_what_changed_and_how_sure_it_is(project: Project) -> None:
    night(project, "--trials", "3", steady="hi there", broke="hi there", odd="hi there")
    night(project, "--trials", "3", steady="hi there", broke="no", odd="refused")
    outcome = compare(project)
    assert "newly failing (1)\n  broke  3/3 → 0/3  surely (p 0.05); contains" in outcome.stdout
    assert "odd  3/3 → error" in outcome.stdout
    assert outcome.stdout.startswith("1 case got worse surely (broke); ")
    assert "; 3 trials were not run.\n" in outcome.stdout
    assert "\n2 cases were edited between the two runs: broke, odd\n" in outcome.stdout
    assert "\x1b" not in outcome.stdout
    assert outcome.stderr == ""


def test_the_gates_that_the_run_began_with_decide_the_exit_code(project: Project) -> None:
    night(project, a="hi there", b="hi there", c="hi there")
    assert "no earlier run" in compare(project).stderr
    night(project, gates="{max_new_failures: 0}", a="no", b="refused", c="hi there")
    project.write({"eval.yaml": SUITE.format(gates="{max_new_failures: 9}")})
    failed = compare(project)
    assert (failed.exit_code, "FAILED" in failed.stdout) == (1, True)
    for gate, code in (
        ("max_new_failures=1", 0),
        ("min_pass_rate=0.6", 1),
        ("max_not_run=0", 1),
        ("max_new_failures=many", 2),
    ):
        assert compare(project, "--gate", gate).exit_code == code, gate


@pytest.mark.parametrize(("killed", "by_id"), [(True, False), (False, True)])
def test_what_ran_after_the_run_was_indexed_counts(
    project: Project, *, by_id: bool, killed: bool
) -> None:
    """It went on, and was killed, or its end could not be indexed."""
    gates = "{max_new_failures: 0}"
    night(project, gates=gates, a="hi there")
    stale = night(project, "--time-limit", "0", gates=gates, a="no")["run_id"]
    assert project.run("run", "--resume", "last", "-q", "--index", "none").exit_code == 1
    if killed:
        (project.root / ".skillup/runs" / stale / "result.json").unlink()
    outcome = compare(project, "previous", stale if by_id else "last", "--json")
    assert changes(outcome) == {"a": "newly_failing"}
    assert outcome.exit_code == 1


def test_a_name_that_means_no_other_run_is_told_so(project: Project) -> None:
    run = night(project, a="hi there")["run_id"]
    for names, told in (
        (["", "last"], "the name of a run is empty"),
        (["--index", ""], "--index is empty"),
        (["last"], f"A and B are the same run, {run}"),
        ([run, f".skillup/runs/{run}"], "`skillup compare previous RUN`"),
    ):
        outcome = compare(project, *names)
        assert (outcome.exit_code, told in outcome.stderr) == (2, True), names


def test_the_page_of_two_runs_says_what_the_comparison_says(project: Project) -> None:
    """V21: the same runs stand in for what A did not get to, and the same gates say how sure."""
    first = night(project, a="hi there", b="hi there")
    night(project, a="refused", b="hi there")
    last = night(project, a="no", b="no", gates="{max_new_failures: 0, confidence: 0.4}")

    project.run("report", "last", "--report", "html", "--against", "previous")

    sides = page_of(project.root / ".skillup/runs" / last["run_id"] / "report.html").index["sides"]
    told = compare(project, "--json").data
    assert {row["case_id"]: row["change"] for row in sides["rows"]} == {
        case["case_id"]: case["change"] for case in told["cases"]
    }
    assert {row["case_id"]: row["change"] for row in sides["rows"]} == dict.fromkeys(
        "ab", "newly_failing"
    )
    assert f"compared with {first['run_id']}" in sides["notes"][0]
    assert any("more than chance" in line for line in sides["summary"])
