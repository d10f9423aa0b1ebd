"""Which trials are held again, and what is told of it."""

from __future__ import annotations

import json

import pytest

from tests.support.project import Project


def case(misbehave: str, *, times: int, retries: int, on: str = "[crash, overloaded]") -> str:
    return f"""
        input: {{prompt: hi}}
        assertions: [{{contains: fine}}]
        retry_policy: {{max_retries: {retries}, retry_on: {on}}}
        scripted: [{{say: fine, misbehave: {{{misbehave}, times: {times}}}}}]
        """


def held(project: Project, text: str) -> tuple[dict[str, object], int]:
    """The grade, and the attempt whose record was kept."""
    project.write({"eval.yaml": "name: d\n", "c.yaml": text})
    grade = project.run_json(".", "--rate-limit-wait", "0")["cases"][0]
    return grade, project.record("c/scripted/with_skill/1")["attempt"]


def test_a_trial_that_recovers_passes_and_the_first_attempts_are_kept(project: Project) -> None:
    grade, attempt = held(project, case("exit_code: 1", times=2, retries=3))
    assert (grade["status"], attempt) == ("PASS", 3)
    trial = project.latest_run() / "trials/c/scripted/with_skill/1"
    kept = sorted(path.name for path in trial.iterdir())
    assert [name for name in kept if "attempt" in name]
    journal = (project.latest_run() / "events.jsonl").read_text(encoding="utf-8")
    assert journal.count('"attempt"') >= 2


@pytest.mark.parametrize(
    ("misbehave", "times", "retries", "on", "attempts"),
    [
        ("exit_code: 1", 9, 2, "[crash]", 3),
        ("exit_code: 1", 9, 0, "[crash]", 1),
        ("exit_code: 1", 9, 2, "[timeout]", 1),
        ("error: overloaded", 9, 1, "overloaded", 2),
        ("error: auth", 9, 1, "[error]", 2),
        ("exit_code: 1", 9, 1, "[error]", 2),
        ("exit_code: 1", 9, 1, "[turn_precondition_fail]", 1),
    ],
)
def test_an_error_is_retried_as_often_and_for_what_the_policy_says(
    project: Project, misbehave: str, times: int, retries: int, on: str, attempts: int
) -> None:
    grade, attempt = held(project, case(misbehave, times=times, retries=retries, on=on))
    assert (grade["status"], attempt) == ("ERROR", attempts)


def test_a_failed_check_is_not_retried(project: Project) -> None:
    text = case("exit_code: 1", times=1, retries=0, on="[error]").replace("say: fine", "say: bad")
    grade, attempt = held(project, text.replace("max_retries: 0", "max_retries: 3"))
    assert (grade["status"], attempt) == ("FAIL", 2)


def test_a_gate_that_fails_is_retried_if_the_policy_says_so(project: Project) -> None:
    text = """
        input: {turns: [{content: hi, post_condition: {must_contain: [fine]}}]}
        retry_policy: {max_retries: 2, retry_on: [turn_precondition_fail]}
        scripted: [{say: bad}]
        """
    grade, attempt = held(project, text)
    assert (grade["status"], attempt) == ("FAIL", 3)


def test_an_error_that_comes_back_every_time_is_not_retried_as_any_error(project: Project) -> None:
    text = """
        input: {prompt: hi}
        context: {fixture: gone}
        assertions: [{contains: x}]
        retry_policy: {max_retries: 5, retry_on: [error]}
        scripted: [{say: x}]
        """
    grade, attempt = held(project, text)
    assert (grade["status"], attempt) == ("ERROR", 1)


def test_the_suites_policy_holds_for_its_cases(project: Project) -> None:
    project.write(
        {
            "eval.yaml": "cases: {retry_policy: {max_retries: 1, retry_on: crash}}\n",
            "c.yaml": """
                input: {prompt: hi}
                assertions: [{contains: fine}]
                scripted: [{say: fine, misbehave: {exit_code: 1, times: 1}}]
                """,
        }
    )
    outcome = project.run("run", ".", "--json")
    assert outcome.exit_code == 0
    assert json.loads(outcome.stdout)["summary"]["pass"] == 1
