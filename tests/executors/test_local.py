"""Dependencies, limits and parallel trials of a run on this machine."""

from __future__ import annotations

import pytest

from tests.support.project import Project

PASS = "input: {prompt: hi}\nassertions: [{contains: fine}]\nscripted: [{say: fine}]\n"
FAIL = PASS.replace("say: fine", "say: bad")
ERROR = PASS.replace("say: fine", "say: fine, misbehave: {exit_code: 1}")


@pytest.mark.parametrize(("first", "status"), [(FAIL, "FAIL"), (ERROR, "ERROR")])
def test_what_depends_on_a_case_that_did_not_pass_is_skipped_down_the_line(
    project: Project, first: str, status: str
) -> None:
    project.write(
        {
            "eval.yaml": "name: d\n",
            "a.yaml": "depends_on: [b]\n" + PASS,
            "b.yaml": "depends_on: [c]\n" + PASS,
            "c.yaml": first,
            "d.yaml": PASS,
        }
    )
    project.write({"e.yaml": "id: group/e\n" + FAIL, "f.yaml": "depends_on: [group/e]\n" + PASS})
    cases = {case["case_id"]: case for case in project.run_json(".")["cases"]}
    assert cases["f"]["reason"] == "depends on group/e, which ended as FAIL"
    found = {name: case["status"] for name, case in cases.items() if len(name) == 1}
    assert found == {"f": "SKIP", "c": status, "b": "SKIP", "a": "SKIP", "d": "PASS"}


def test_dependencies_hold_trial_by_trial_and_in_parallel(project: Project) -> None:
    project.write(
        {
            "eval.yaml": "name: d\n",
            "a.yaml": PASS,
            "b.yaml": "depends_on: [a]\n" + PASS,
            "c.yaml": "depends_on: [a, b]\n" + PASS,
        }
    )
    result = project.run_json(".", "-j", "4", "--trials", "3")
    assert result["summary"]["pass"] == 9
    events = [(event["event"], event.get("job")) for event in project.journal()]
    for trial in (1, 2, 3):
        ended = events.index(("trial_finished", f"a/scripted/with_skill/{trial}"))
        began = events.index(("trial_started", f"b/scripted/with_skill/{trial}"))
        assert ended < began


def test_after_so_many_bad_ones_no_more_are_started(project: Project) -> None:
    project.write({"eval.yaml": "name: d\n", **{f"c{n}.yaml": FAIL for n in range(8)}})
    outcome = project.run("run", ".", "-j", "1", "--max-fail", "2", "--json")
    assert outcome.exit_code == 1
    assert outcome.data["summary"]["fail"] == 2
    assert len(outcome.data["not_run"]) == 6
    assert outcome.data["finished"] is False
