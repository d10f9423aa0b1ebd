"""`skillup compare` from the outside: two nights of a suite."""

from __future__ import annotations

from typing import Any

import pytest

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
    """Hold a run whose agent says this in each case; `refused` is an error."""
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
    assert "too little data to tell" in outcome.stdout
    assert "\x1b" not in outcome.stdout
    assert outcome.stderr == ""


def test_a_run_of_one_case_in_between_is_not_the_night_before(project: Project) -> None:
    """Somebody saw by day what broke: to the night it is news all the same."""
    whole = night(project, steady="hi there", broke="hi there")
    night(project, "-k", "broke", broke="no")
    night(project, gates="{max_new_failures: 0}", broke="no")
    outcome = compare(project, "--json")
    assert outcome.data["a"]["run_id"] == whole["run_id"]
    assert changes(outcome) == {"broke": "newly_failing", "steady": "still_passing"}
    assert outcome.exit_code == 1


def test_compared_with_a_run_of_one_case_the_others_are_found_before_it(project: Project) -> None:
    whole = night(project, "--trials", "3", broke="hi there", other="hi there")
    few = night(project, "-k", "other", broke="hi there", other="hi there")
    last = night(project, "--trials", "3", broke="no", other="hi there", new="no")
    outcome = compare(project, few["run_id"], "last", "--json")
    told = {"broke": "newly_failing", "other": "still_passing", "new": "only_in_b"}
    assert changes(outcome) == told
    (broke,) = [case for case in outcome.data["cases"] if case["case_id"] == "broke"]
    assert broke["a_from_run"] == whole["run_id"]
    text = compare(project, few["run_id"], "last").stdout
    assert f"broke  3/3 → 0/3  not run in A: compared with {whole['run_id']}" in text
    assert f"1 case without a verdict in A is compared with {whole['run_id']}" in text
    # Nor is a run its own past, where the later one is named first.
    assert (
        changes(compare(project, last["run_id"], whole["run_id"], "--json"))["new"] == "only_in_a"
    )


def test_a_run_until_decided_says_what_that_means_for_the_tests(project: Project) -> None:
    night(project, "--trials", "2", "--until-decided", a="hi there")
    night(project, "--trials", "2", a="no")
    found = compare(project, "--json").data
    (note,) = found["notes"]
    assert note.startswith("A was held --until-decided")
    assert found["verdicts"]["p"] is None
    assert found["scores"]["p"] is None
    text = compare(project).stdout
    assert note in text
    assert "lower in 1, higher in 0 of 1 case; all together not tested\n" in text


@pytest.mark.parametrize(
    ("gates", "exit_code"),
    [
        ("{max_new_failures: 0}", 1),
        ("{max_new_failures: 1}", 0),
        ("{min_pass_rate: 0.5}", 0),
        ("{min_pass_rate: 0.6}", 1),
        ("{max_not_run: 0}", 1),
        ("{max_not_run: 1, max_new_failures: 1}", 0),
    ],
)
def test_the_suites_gates_decide_the_exit_code(
    project: Project, gates: str, exit_code: int
) -> None:
    night(project, a="hi there", b="hi there", c="hi there")
    night(project, gates=gates, a="no", b="refused", c="hi there")
    outcome = compare(project)
    assert outcome.exit_code == exit_code
    assert ("NOT MET" in outcome.stdout) == bool(exit_code)


def test_gates_of_the_command_line_outrank_those_of_the_suite(project: Project) -> None:
    night(project, a="hi there")
    night(project, gates="{max_new_failures: 0}", a="no")
    assert compare(project, "--gate", "max_new_failures=1").exit_code == 0
    assert compare(project, "--gate", "min_pass_rate=0.5").exit_code == 1
    refused = compare(project, "--gate", "max_new_failures=many")
    assert refused.exit_code == 2
    assert "--gate max_new_failures=many" in refused.stderr


def test_gates_are_those_of_the_run_not_of_the_suite_as_it_is_now(project: Project) -> None:
    night(project, a="hi there")
    night(project, a="no", gates="{max_new_failures: 0}")
    project.write({"eval.yaml": SUITE.format(gates="{max_new_failures: 9}")})
    assert compare(project).exit_code == 1


def test_runs_are_named_by_directory_id_or_the_beginning_of_an_id(project: Project) -> None:
    a = night(project, "--out", "first", a="hi there")
    b = night(project, "--out", "second", a="no")
    for names in (("first", "second"), (a["run_id"], b["run_id"]), ("previous", "second")):
        assert changes(compare(project, *names, "--json")) == {"a": "newly_failing"}
    assert changes(compare(project, "last", "first", "--json")) == {"a": "newly_passing"}
    unknown = compare(project, "1999", "last")
    assert unknown.exit_code == 2
    assert b["run_id"] in unknown.stderr


def test_a_run_that_was_kept_out_of_the_index_is_the_last_one_all_the_same(
    project: Project,
) -> None:
    for say in ("hi there", "hi there"):
        night(project, a=say)
    failed = night(project, "--index", "none", a="no")
    outcome = compare(project, "--json")
    assert changes(outcome) == {"a": "newly_failing"}
    assert outcome.data["b"]["run_id"] == failed["run_id"]


def test_a_run_is_not_compared_with_itself(project: Project) -> None:
    run = night(project, a="hi there")["run_id"]
    for names in (["last"], ["last", "last"], [run, f".skillup/runs/{run}"]):
        outcome = compare(project, *names)
        assert outcome.exit_code == 2
        assert f"A and B are the same run, {run}" in outcome.stderr
        assert "compare previous" in outcome.stderr


def test_directories_need_no_index(project: Project) -> None:
    for out, say in (("first", "hi there"), ("second", "no")):
        night(project, "--out", out, "--index", "none", a=say)
    outcome = compare(project, "first", "second", "--json")
    assert changes(outcome) == {"a": "newly_failing"}
    alone = compare(project)
    assert alone.exit_code == 3
    assert "--rebuild" in alone.stderr


def test_the_first_run_has_nothing_to_be_compared_with(project: Project) -> None:
    night(project, a="hi there")
    outcome = compare(project)
    assert outcome.exit_code == 2
    assert "no earlier run" in outcome.stderr


def test_an_error_in_between_hides_no_regression(project: Project) -> None:
    first = night(project, a="hi there")
    night(project, a="refused")
    night(project, a="no", gates="{max_new_failures: 0}")
    outcome = compare(project, "--json")
    assert changes(outcome) == {"a": "newly_failing"}
    assert outcome.data["cases"][0]["a_from_run"] == first["run_id"]
    assert outcome.exit_code == 1
    assert f"not run in A: compared with {first['run_id']}" in compare(project).stdout


def test_a_score_that_changes_under_the_same_verdict_is_shown(project: Project) -> None:
    night(project, a="hi", b="hi there")
    night(project, a="no", b="hi there")
    outcome = compare(project)
    assert "still failing (1)" in outcome.stdout
    assert "another score, the same verdict (1)\n  a  0/1 → 0/1  score" in outcome.stdout


@pytest.mark.parametrize("trials", ["1", "5"])
def test_an_error_of_what_a_case_depends_on_hides_no_regression(
    project: Project, trials: str
) -> None:
    runs = []
    for a, b in (("hi there", "hi there"), ("refused", "hi there"), ("hi there", "no")):
        project.write({"cases/b.yaml": "\n    depends_on: [a]" + CASE.format(say=b)})
        gates = "{max_new_failures: 0, max_not_run: 0}"
        runs.append(night(project, "--trials", trials, gates=gates, a=a)["run_id"])
    outcome = compare(project, "--json")
    assert changes(outcome) == {"a": "still_passing", "b": "newly_failing"}
    assert {case["a_from_run"] for case in outcome.data["cases"]} == {runs[0]}
    assert outcome.exit_code == 1
    assert f"skipped in A: compared with {runs[0]}" in compare(project).stdout


def test_a_skip_by_the_cases_own_rules_hides_no_regression(project: Project) -> None:
    case = """
        input:
          turns:
            - content: one
              post_condition: {contains: go, on_fail: skip_remaining}
            - {content: two, assertions: [{contains: there}]}
        scripted:
          - {turn: 1, say: "%s"}
          - {turn: 2, say: "%s"}
        """
    project.write({"eval.yaml": SUITE.format(gates="{max_new_failures: 0}")})
    for first, second in (("go", "there"), ("stop", "there"), ("go", "no")):
        project.write({"cases/a.yaml": case % (first, second)})
        project.run("run", ".")
    outcome = compare(project, "--json")
    assert changes(outcome) == {"a": "newly_failing"}
    assert outcome.exit_code == 1
