"""Refusals in a run: waited out, held anew where they must be, and never for ever."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from skillup.executors.retries import MOST_RESTARTS
from skillup.ratelimit import RateLimiter
from skillup.store import RunDirectory
from tests.support.moody import set_mood
from tests.support.plans import a_plan, run_plan
from tests.support.project import Project

CASE = """
    input: {turns: [one, two, three]}
    assertions: [{contains: "one, two"}]
    scripted:
      - {turn: 1, say: fine}
      - {turn: 2, say: fine, steps: STEPS, misbehave: {error: KIND, times: TIMES}}
      - {turn: 3, say: "{{turns.1.user}}, {{turns.2.user}}"}
    """
ASKS = 'error: rate_limit, message: "try again in 4 s"'
WRITE = "[{write: {path: x.txt, content: x}}]"


def held(
    project: Project, kind: str, *, times: int, steps: str = "[]", more: str = ""
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The grade and the record."""
    case = CASE.replace("STEPS", steps).replace("KIND", kind).replace("TIMES", str(times))
    project.write({"eval.yaml": "name: d\n", "a.yaml": case + more})
    grade = project.run_json(".")["cases"][0]
    return grade, project.record("a/scripted/with_skill/1")


@pytest.mark.parametrize("kind", ["rate_limit", "overloaded"])
def test_a_refusal_in_the_middle_is_waited_out_in_the_same_session(
    project: Project, kind: str
) -> None:
    grade, record = held(project, kind, times=2)
    assert (grade["status"], record["attempt"]) == ("PASS", 1)
    assert f"refused the message 2 times ({kind})" in record["turns"][1]["notes"][0]
    refused = [event for event in project.journal() if event["event"] == "message_refused"]
    assert [(event["error"], event["times"]) for event in refused] == [(kind, 1), (kind, 2)]


def test_a_trial_whose_workspace_was_touched_is_held_anew_and_no_policy_counts_that(
    project: Project,
) -> None:
    more = "retry_policy: {max_retries: 0}\n"
    grade, record = held(project, "rate_limit", times=1, steps=WRITE, more=more)
    assert (grade["status"], record["attempt"]) == ("PASS", 2)
    (note,) = record["notes"]
    assert note.startswith("attempt 1 was refused by the provider and could not go on: the agent")
    path = project.latest_run() / "trials/a/scripted/with_skill/1/attempt-1.json"
    first = json.loads(path.read_text(encoding="utf-8"))
    assert [turn["status"] for turn in first["turns"]] == ["completed", "error", "skipped"]


SHARING = """
    input: {turns: [one, two, three]}
    assertions: [{contains: fine}]
    scripted:
      - {turn: 1, say: fine, steps: STEPS, misbehave: {error: overloaded, times: 1}}
      - {turn: 3, say: fine, misbehave: THIRD}
      - {say: fine}
    """


def shared(project: Project, third: str, more: str = "") -> list[str]:
    """The statuses of two trials that share two turns; the first is refused once, touched."""
    case = SHARING.replace("STEPS", WRITE).replace("THIRD", third)
    project.write({"eval.yaml": "name: d\n", "a.yaml": case + more})
    result = project.run_json(".", "--trials", "2", "--trials-from-turn", "3")
    return [case["status"] for case in result["cases"]]


def test_paths_of_a_family_are_held_anew_too(project: Project) -> None:
    assert shared(project, "{error: rate_limit, times: 2}") == ["PASS", "PASS"]
    notes = [project.record(f"a/scripted/with_skill/{n}")["notes"] for n in (1, 2)]
    anew = "attempt 1 ended in the shared turns (overloaded): they ran again"
    assert notes == [[anew], [anew]]


def test_attempts_after_a_refusal_count_for_no_policy_in_a_family_either(project: Project) -> None:
    policy = "retry_policy: {max_retries: 1, retry_on: [crash]}\n"
    assert shared(project, "{exit_code: 1, times: 2}", policy) == ["PASS", "PASS"]
    retried = [e for e in project.journal() if e["event"] == "trial_retried"]
    told = {(e["job"][-1], e["attempt"], e["error"]) for e in retried}
    assert told == {(n, k, e) for n in "12" for k, e in ((1, "overloaded"), (2, "crash"))}
    assert project.record("a/scripted/with_skill/1")["attempt"] == 3


REFUSED_FOR_EVER = {
    "input": {"turns": ["one", "two", "three"]},
    "scripted": [
        {"turn": 2, "say": "fine", "steps": [{"run": "echo >> x"}], "misbehave": {"error": "KIND"}},
        {"say": "fine"},
    ],
}


@pytest.mark.parametrize("from_turn", [None, 3])
@pytest.mark.parametrize("kind", ["rate_limit", "overloaded"])
def test_what_is_refused_for_ever_is_held_anew_five_times_and_then_an_error(
    tmp_path: Path, kind: str, from_turn: int | None
) -> None:
    case = json.loads(json.dumps(REFUSED_FOR_EVER).replace("KIND", kind))
    plan = a_plan(tmp_path, {"a": case}, trials=2, trials_from_turn=from_turn)
    now = 0.0

    async def sleep(seconds: float) -> None:
        nonlocal now
        now += seconds

    grades = run_plan(
        plan,
        tmp_path / "run",
        rate_limiter=RateLimiter(3600, clock=lambda: now, sleep=sleep),
    )
    run = RunDirectory.open(tmp_path / "run")
    for job in plan.jobs:
        assert grades[job.id].status == "ERROR"
        record = run.read_record(job.id)
        assert [turn.error and turn.error.kind for turn in record.turns] == [None, kind, None]
        assert record.attempt == 1 + MOST_RESTARTS
        assert [kept.attempt for kept in run.attempts(job.id)] == [1, 2, 3, 4, 5]


@pytest.mark.parametrize(("turn", "begun"), [(1, "1"), (3, "123")])
def test_in_a_family_a_quota_leaves_all_its_trials(project: Project, turn: int, begun: str) -> None:
    case = """
        input: {turns: [one, two, three]}
        assertions: [{contains: fine}]
        scripted: [{turn: TURN, say: x, misbehave: {error: quota}}, {say: fine}]
        """
    project.write({"eval.yaml": "name: d\n", "a.yaml": case.replace("TURN", str(turn))})
    result = project.run_json(".", "--trials", "3", "--trials-from-turn", "3")
    assert result["cases"] == []
    assert result["stopped"]["kind"] == "quota"
    assert not (project.latest_run() / "scratch").exists()
    told = [event["job"][-1] for event in project.journal() if event["event"] == "trial_left"]
    assert sorted(told) == list(begun)  # what watches the run shows them no more


def test_when_nothing_is_accepted_for_so_long_the_run_ends(project: Project) -> None:
    case = CASE.replace("STEPS", "[]").replace("KIND", "overloaded").replace("TIMES", "99")
    project.write({"eval.yaml": "name: d\n", "a.yaml": case, "b.yaml": case})
    outcome = project.run("run", ".", "--rate-limit-wait", "2", "-j", "2", "--json")
    assert outcome.data["cases"] == []
    assert outcome.data["stopped"]["kind"] == "quota"
    assert "nothing was accepted in 2 s of waiting" in outcome.data["stopped"]["message"]
    assert outcome.exit_code not in (0, 2)


@pytest.mark.parametrize("shared", [(), ("--trials", "2", "--trials-from-turn", "3")])
def test_waiting_takes_nothing_of_the_conversations_time_nor_of_the_trials(
    project: Project, shared: tuple[str, ...]
) -> None:
    case = CASE.replace("STEPS", "[]").replace("error: KIND", ASKS).replace("TIMES", "3")
    project.write({"eval.yaml": "name: d\n", "a.yaml": case + "timeout_seconds: 60\n"})
    began = time.monotonic()
    grades = project.run_json(".", *shared)["cases"]
    whole_ms = (time.monotonic() - began) * 1000
    for number, grade in enumerate(grades, 1):
        assert grade["status"] == "PASS"
        record = project.record(f"a/scripted/with_skill/{number}")
        held_ms = sum(turn["duration_ms"] for turn in record["turns"])
        # Each of the three refusals was waited out for four seconds.
        assert held_ms <= record["duration_ms"] <= whole_ms - 12_000


def test_a_judge_and_a_user_on_the_trials_own_account_are_waited_for_as_its_messages_are(
    project: Project,
) -> None:
    case = """
        input:
          conversation: {max_turns: 3, persona: {objective: renew the card}}
        judge:
          type: agent_judge
          criteria: [it was renewed]
          scripted:
            - misbehave: {error: rate_limit, times: 1}
              say: >
                {"criteria": [{"id": "criterion-1", "pass": true, "reason": "so", "evidence": []}]}
        scripted: [{say: It is renewed.}]
        """
    suite = """
        name: d
        user_simulator:
          engine: scripted
          scripted:
            - {when: It is renewed, turn: 1, say: '{"stop": "completed", "reason": "done"}'}
            - {turn: 1, say: '{"message": "Renew it."}', misbehave: {error: overloaded, times: 1}}
            - {turn: 2, say: x, misbehave: {error: rate_limit, times: 1}}
        """
    project.write({"eval.yaml": suite, "a.yaml": case})
    (grade,) = project.run_json(".")["cases"]
    assert grade["status"] == "PASS", grade
    assert grade["simulator"]["stop"] == "completed"
    assert grade["judging"]["calls"] == 1
    raw = project.latest_run() / "trials/a/scripted/with_skill/1/raw/user"
    assert {path.name for path in raw.glob("*.refused-1.stdout.jsonl")} == {
        "user-01.refused-1.stdout.jsonl",
        "user-02.refused-1.stdout.jsonl",
    }


def test_a_judge_whose_allowance_is_used_up_ends_the_run_and_is_asked_when_it_goes_on(
    project: Project,
) -> None:
    case = """
        input: {turns: [one]}
        judge:
          type: agent_judge
          engine: moody
          criteria: [it was fine]
          scripted:
            - turn: 1
              say: >
                {"criteria": [{"id": "criterion-1", "pass": true, "reason": "so", "evidence": []}]}
        scripted: [{say: fine}]
        """
    project.write({"eval.yaml": "name: d\n", "a.yaml": case, "b.yaml": case})
    set_mood(project, 1, error="quota")
    stopped = project.run("run", ".", "-j", "1", "--out", "out", "--json").data
    assert (stopped["cases"], stopped["stopped"]["kind"]) == ([], "quota")
    first = project.root / "out/trials/a/scripted/with_skill/1/record.json"
    held_before = first.read_bytes()
    set_mood(project)
    result = project.run_json("--resume", "out")
    assert [case["status"] for case in result["cases"]] == ["PASS", "PASS"]
    assert first.read_bytes() == held_before
