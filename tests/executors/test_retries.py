"""Which trials run again, by the suite's policy and by `--retry-errors`, and what is kept."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import Any

import pytest

from skillup.executors.retries import Attempt, retry_of, trials_to_retry
from skillup.schema.case import RetryPolicy
from skillup.schema.record import ErrorKind, Record, TurnError
from skillup.store import RunDirectory
from skillup.store.files import pack
from skillup.trial.request import Interruption, TrialResult
from tests.support.moody import set_mood
from tests.support.plans import a_plan, run_plan
from tests.support.project import Outcome, Project, wait_until
from tests.support.records import make_record, make_turn
from tests.support.stored import change


def attempts(run: Path, job: str) -> list[Record]:
    """Records that did not count, in order."""
    with RunDirectory.open(run) as directory:
        return list(directory.attempts(job))


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


# `--resume RUN --retry-errors`: what met an error runs again, what had a verdict is not.

CASE = """
    input: {turns: [one, two]}
    assertions: [{contains: one two}]
    scripted:
      - {turn: 1, say: fine}
      - {turn: 2, say: "{{turns.1.user}} two"}
    """
AFTER = """
    depends_on: [a]
    input: {prompt: x}
    assertions: [{contains: x}]
    scripted: [{say: x}]
    """
PRICES = "prices: {input: 1000, output: 1000}\n"
TRIAL = "a/moody/with_skill/1"


@pytest.fixture
def failed(project: Project) -> Path:
    """A run in which `a` met an error in its second turn, and `b` was skipped for it."""
    project.write({"eval.yaml": "name: d\n", "a.yaml": CASE, "b.yaml": AFTER})
    set_mood(project, 2, error="rate_limit")
    profile = project.root / "engines/moody.yaml"
    profile.write_text(profile.read_text(encoding="utf-8") + PRICES, encoding="utf-8")
    outcome = project.run(
        "run", ".", "-e", "moody", "--out", "out", "--rate-limit-wait", "0", "--index", "index.db"
    )
    assert outcome.exit_code == 3
    command = f"skillup run --resume {project.root / 'out'} --index index.db --retry-errors"
    assert f"1 trial met an error; once that is mended: {command}" in outcome.stderr
    return project.root / "out"


def resume(project: Project, *arguments: str) -> Outcome:
    return project.run("run", "--resume", "out", "--json", "--index", "index.db", *arguments)


def has_checkpoint(run: Path, job: str) -> bool:
    with RunDirectory.open(run) as directory:
        return directory.read_checkpoint(job) is not None


def statuses(outcome: Outcome) -> list[str]:
    return [case["status"] for case in outcome.data["cases"]]


def behave(project: Project) -> None:
    (project.root / "mood.json").unlink()


def test_without_it_an_error_stays_and_with_it_the_trial_is_held_again(
    project: Project, failed: Path
) -> None:
    before = Record.model_validate(project.record(TRIAL, run="out"))
    behave(project)
    assert statuses(resume(project)) == ["ERROR", "SKIP"]
    again = resume(project, "--retry-errors")
    assert again.exit_code == 0, again.stderr
    assert statuses(again) == ["PASS", "PASS"]
    assert "run again: 1 trial that met an error (rate_limit ×1)" in again.stderr
    assert "--retry-errors" not in again.stderr
    assert attempts(failed, TRIAL) == [before]
    (retried,) = project.journal("errors_retried", run="out")
    assert retried["held_again"] == ["a/moody/with_skill/1"]
    assert retried["skipped_before"] == ["b/moody/with_skill/1"]
    trend = project.run("trends", "--index", "index.db", "--json").data
    assert "ERROR" not in json.dumps(trend)
    nothing = resume(project, "--retry-errors")
    assert "no trial of this run met an error" in nothing.stderr
    assert len(attempts(failed, TRIAL)) == 1


def test_what_the_earlier_attempt_took_counts_once_for_a_budget(
    project: Project, failed: Path
) -> None:
    behave(project)
    first = json.loads((failed / "result.json").read_text())["cases"][0]["cost_usd"]
    assert first > 0
    spent = resume(project, "--retry-errors", "--max-cost-usd", f"{first:g}")
    assert spent.data["not_run"] == ["a/moody/with_skill/1", "b/moody/with_skill/1"]
    assert f"({first:.2f} USD)" in spent.data["stopped"]["message"]
    more = resume(project, "--max-cost-usd", f"{first * 1.01:g}")
    assert statuses(more)[0] == "PASS"


def test_killed_while_it_is_held_again_nothing_is_lost(project: Project, failed: Path) -> None:
    before = Record.model_validate(project.record(TRIAL, run="out"))
    set_mood(project, 2, hang=True)
    arguments = ["run", "--resume", "out", "--retry-errors"]
    with project.start(*arguments) as process:
        wait_until(lambda: has_checkpoint(failed, TRIAL), process)
        process.send_signal(signal.SIGKILL)
    assert attempts(failed, TRIAL) == [before]
    assert not (failed / "result.json").exists()
    behave(project)
    assert statuses(resume(project)) == ["PASS", "PASS"]


def test_errors_of_the_case_itself_are_left(tmp_path: Path) -> None:
    plan = a_plan(tmp_path, {"a": {}, "b": {}, "c": {}, "d": {}})
    run = tmp_path / "run"
    run_plan(plan, run)
    every: tuple[ErrorKind, ...] = ("template", "engine_not_found", "internal", "unsupported")
    kinds = dict(zip("abcd", every, strict=True))
    with RunDirectory.open(run) as directory:
        records = [found.record() for found in directory.finished()]
    for record in records:
        error = TurnError(kind=kinds[record.case_id], message="so it is")
        data = record.model_copy(update={"error": error}).on_disk().model_dump_json()
        sql = "UPDATE attempts SET grade = NULL, record = ? WHERE job LIKE ?"
        change(run, sql, pack(data.encode()), f"{record.case_id}/%")
    found = trials_to_retry(plan, RunDirectory.open(run))
    assert found.left == {"a/p/with_skill/1": "template"}
    # Another version of the CLI may be what was `unsupported`.
    assert sorted(found.rerun.values()) == ["engine_not_found", "internal", "unsupported"]


JUDGED = """
    input: {prompt: hi}
    assertions: [{script: {path: judge.sh}}]
    scripted: [{say: fine, steps: [{run: "echo run >> LOG"}]}]
    """


def test_where_only_judging_met_an_error_only_that_is_done_again(project: Project) -> None:
    log = project.root / "log.txt"
    project.write(
        {
            "eval.yaml": "name: d\n",
            "a.yaml": JUDGED.replace("LOG", str(log)),
            "b.yaml": AFTER,
            "judge.sh": f"#!/bin/sh\n[ -e {project.root}/mended ] || kill -9 $$\n",
        }
    )
    (project.root / "judge.sh").chmod(0o755)
    first = project.run("run", ".", "--out", "out", "--json")
    assert [(c["status"], (c["error"] or {}).get("kind")) for c in first.data["cases"]] == [
        ("ERROR", "judge"),
        ("SKIP", None),
    ]
    before = project.record("a/scripted/with_skill/1", run="out")
    (project.root / "mended").touch()
    again = project.run("run", "--resume", "out", "--retry-errors", "--json")
    assert [case["status"] for case in again.data["cases"]] == ["PASS", "PASS"], again.stderr
    assert "judged again: 1 trial with a whole conversation" in again.stderr
    assert project.record("a/scripted/with_skill/1", run="out") == before
    assert log.read_text() == "run\n"


REPEATED = """
    input: {prompt: hi}
    assertions: [{contains: fine}]
    scripted: [{turn: 1, probability: 0.2, say: fine}, {say: fine}]
    """
MANY = ("-e", "moody", "--trials", "8", "--until-decided", "--pass-rate", "0.5")


def repeated(project: Project, case: str) -> Outcome:
    """Eight trials at once of a case that five passes decide; lots say which of them fail."""
    project.write({"eval.yaml": "name: d\n", f"{case}.yaml": REPEATED})
    set_mood(project, 1, error="auth")
    outcome = project.run("run", ".", *MANY, "-j", "8", "--out", "out", "--json")
    set_mood(project)
    return outcome


def failed_trials(outcome: Outcome) -> list[int]:
    return [case["trial"] for case in outcome.data["cases"] if case["status"] == "ERROR"]


def decision(outcome: Outcome) -> tuple[str, int]:
    (case,) = outcome.data["analysis"]["cases"]
    return case["decision"]["verdict"], case["decision"]["trials"]


def test_what_a_case_was_decided_without_is_taken_back_and_does_not_run_again(
    project: Project,
) -> None:
    first = repeated(project, "e4")
    assert failed_trials(first) == [7, 8]
    assert decision(first) == ("above", 5)
    again = project.run("run", "--resume", "out", "--json", "--retry-errors")
    text = "run again: 2 trials that met an error (auth ×2)"
    assert text in again.stderr
    assert again.data["not_needed"] == [f"e4/moody/with_skill/{n}" for n in (7, 8)]
    assert (again.data["summary"]["pass"], decision(again)) == (6, ("above", 5))
    taken_back = [attempts(project.root / "out", f"e4/moody/with_skill/{n}") for n in (7, 8)]
    assert list(map(len, taken_back)) == [1, 1]
