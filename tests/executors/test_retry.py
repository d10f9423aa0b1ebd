"""Which trials run again, by the suite's policy, and what is kept of them."""

from __future__ import annotations

from typing import Any

import pytest

from skillup.executors.scheduler import Attempt, retry_of
from skillup.schema.case import RetryPolicy
from skillup.schema.record import ErrorKind, Record, TurnError
from skillup.trial.request import Interruption, TrialResult
from tests.support.project import Project
from tests.support.records import make_record, make_turn


def a_record(kind: ErrorKind | None, attempt: int = 1, *, gate: bool | None = None) -> Record:
    error = TurnError(kind=kind, message="so it is") if kind is not None else None
    turn = make_turn().model_copy(update={"error": error, "post_condition_passed": gate})
    return make_record(turn).record.model_copy(update={"attempt": attempt})


def reason_of(
    kind: ErrorKind | None, policy: RetryPolicy, attempt: Attempt, *, gate: bool | None = None
) -> str | None:
    retry = retry_of(TrialResult(a_record(kind, attempt.number, gate=gate)), policy, attempt)
    return retry[0] if retry is not None else None


@pytest.mark.parametrize(
    ("kind", "retry_on", "retries", "attempt", "uncounted", "runs_again"),
    [
        ("crash", ["crash"], 2, 2, 0, True),
        ("crash", ["crash"], 2, 3, 0, False),
        ("crash", ["crash"], 0, 1, 0, False),
        ("crash", ["timeout"], 2, 1, 0, False),
        ("crash", ["turn_precondition_fail"], 2, 1, 0, False),
        ("crash", ["crash"], 1, 3, 2, True),  # two of the attempts were refused
        ("auth", ["error"], 1, 1, 0, True),
        ("setup", ["setup"], 1, 1, 0, True),
        # What comes back every time is retried only by its name.
        *((kind, ["error"], 5, 1, 0, False) for kind in ("setup", "template", "quota", "internal")),
        (None, ["error", "crash"], 3, 1, 0, False),  # a failed check
    ],
)
def test_an_error_is_retried_as_often_and_for_what_the_policy_says(
    kind: Any, retry_on: list[str], retries: int, attempt: int, uncounted: int, runs_again: bool
) -> None:
    policy = RetryPolicy.model_validate({"max_retries": retries, "retry_on": retry_on})
    assert reason_of(kind, policy, Attempt(attempt, uncounted)) == (kind if runs_again else None)
    assert retry_of(TrialResult(a_record(kind, attempt)), None, Attempt(attempt)) is None


def test_a_gate_that_fails_is_retried_if_the_policy_says_so() -> None:
    policy = RetryPolicy.model_validate({"max_retries": 1, "retry_on": ["turn_precondition_fail"]})
    assert reason_of(None, policy, Attempt(), gate=False) == "turn_precondition_fail"
    assert reason_of(None, policy, Attempt(), gate=True) is None


def test_a_restart_counts_for_no_policy_and_its_note_stays() -> None:
    policy = RetryPolicy.model_validate({"max_retries": 1, "retry_on": ["crash"]})
    refused = TrialResult(a_record("rate_limit"), Interruption("restart", "it was touched"))
    reason, second = retry_of(refused, policy, Attempt()) or ("", Attempt())
    assert (reason, second.number, second.uncounted) == ("rate_limit", 2, 1)
    then = retry_of(TrialResult(a_record("crash", 2)), policy, second)
    assert then == ("crash", Attempt(3, 1, second.note))
    assert retry_of(TrialResult(a_record("crash", 3)), policy, then[1]) is None
    assert retry_of(refused, policy, Attempt(6, 5)) is None


def test_a_trial_that_recovers_passes_and_the_first_attempts_are_kept(project: Project) -> None:
    text = """
        input: {prompt: hi}
        assertions: [{contains: fine}]
        scripted: [{say: fine, misbehave: {exit_code: 1, times: 2}}]
        """
    suite = "cases: {retry_policy: {max_retries: 3, retry_on: crash}}\n"
    project.write({"eval.yaml": suite, "c.yaml": text})
    (grade,) = project.run_json(".")["cases"]
    assert (grade["status"], project.record("c/scripted/with_skill/1")["attempt"]) == ("PASS", 3)
    trial = project.latest_run() / "trials/c/scripted/with_skill/1"
    assert {path.name for path in trial.glob("attempt-*")} == {"attempt-1.json", "attempt-2.json"}
    assert [event["attempt"] for event in project.journal("trial_retried")] == [1, 2]
