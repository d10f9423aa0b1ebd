"""Refusals in a run: waited out, begun anew where they must be, and never for ever."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from skillup.executors.retries import MOST_RESTARTS
from skillup.ratelimit import RateLimiter
from skillup.schema.record import Record
from skillup.store import RunDirectory
from tests.support.exported import exported
from tests.support.moody import set_mood
from tests.support.plans import a_plan, run_plan
from tests.support.project import Project
from tests.support.virtual_time import HurriedTime

CASE = """
    input: {turns: [one, two, three]}
    assertions: [{contains: "one, two"}]
    scripted:
      - {turn: 1, say: fine}
      - {turn: 2, say: fine, steps: STEPS, misbehave: {error: KIND, times: TIMES}}
      - {turn: 3, say: "{{turns.1.user}}, {{turns.2.user}}"}
    """


def run_refused(
    tmp_path: Path,
    scripted: list[dict[str, Any]],
    *,
    trials: int = 1,
    shared: int | None = None,
    **more: Any,
) -> tuple[list[Record], RunDirectory]:
    """The records of trials of three turns, with waits that take no time; and the run."""
    case = {"input": {"turns": ["one", "two", "three"]}, "scripted": scripted, **more}
    plan = a_plan(tmp_path, {"a": case}, trials=trials, trials_from_turn=shared)
    run_plan(plan, tmp_path / "run", rate_limiter=RateLimiter(3600, **HurriedTime().both))
    run = RunDirectory.open(tmp_path / "run")
    return [run.read_record(job.id) for job in plan.jobs], run


def second(kind: str, times: int, *steps: dict[str, Any]) -> dict[str, Any]:
    """The agent's second turn: refused so often, after `steps`."""
    fault = {"error": kind, "times": times}
    return {"turn": 2, "say": "fine", "steps": list(steps), "misbehave": fault}


FINE: dict[str, Any] = {"say": "fine"}
TOUCH: dict[str, Any] = {"run": "echo >> x"}


def test_a_trial_whose_workspace_was_touched_begins_anew_and_no_policy_counts_that(
    tmp_path: Path,
) -> None:
    policy: dict[str, Any] = {"retry_policy": {"max_retries": 0}}
    (record,), run = run_refused(tmp_path, [second("rate_limit", 1, TOUCH), FINE], **policy)
    assert (record.first_error(), record.attempt) == (None, 2)
    (note,) = record.notes
    assert note.startswith("attempt 1 was refused by the provider and could not go on: the")
    (first,) = run.attempts("a/p/with_skill/1")
    assert [turn.status for turn in first.turns] == ["completed", "error", "skipped"]


def test_trials_that_share_turns_begin_anew_together_and_count_for_no_policy_either(
    tmp_path: Path,
) -> None:
    policy: dict[str, Any] = {"retry_policy": {"max_retries": 1, "retry_on": ["crash"]}}
    crash = {"turn": 3, "say": "fine", "misbehave": {"exit_code": 1, "times": 2}}
    script = [second("overloaded", 1, TOUCH), crash, FINE]
    records, run = run_refused(tmp_path, script, trials=2, shared=3, **policy)
    assert [(record.first_error(), record.attempt) for record in records] == [(None, 3)] * 2
    retried = [event for event in run.events() if event["event"] == "trial_retried"]
    found = {(e["job"][-1], e["attempt"], e["error"]) for e in retried}
    assert found == {(n, k, e) for n in "12" for k, e in ((1, "overloaded"), (2, "crash"))}


@pytest.mark.parametrize(("kind", "shared"), [("rate_limit", None), ("overloaded", 3)])
def test_what_is_refused_for_ever_begins_anew_five_times_and_is_an_error_then(
    tmp_path: Path, kind: str, shared: int | None
) -> None:
    script = [second(kind, 99, TOUCH), FINE]
    records, run = run_refused(tmp_path, script, trials=2, shared=shared)
    for number, record in enumerate(records, start=1):
        assert [turn.error and turn.error.kind for turn in record.turns] == [None, kind, None]
        assert record.attempt == 1 + MOST_RESTARTS
        kept = run.attempts(f"a/p/with_skill/{number}")
        assert [one.attempt for one in kept] == [1, 2, 3, 4, 5]


@pytest.mark.parametrize("turn", [1, 3])
def test_in_a_family_a_quota_leaves_all_its_trials(project: Project, turn: int) -> None:
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
    left = [event["job"][-1] for event in project.journal("trial_left")]
    assert sorted(left) == ["1", "2", "3"]  # what watches the run shows them no more


def test_when_nothing_is_accepted_for_so_long_the_run_ends(project: Project) -> None:
    case = CASE.replace("STEPS", "[]").replace("KIND", "overloaded").replace("TIMES", "99")
    project.write({"eval.yaml": "name: d\n", "a.yaml": case, "b.yaml": case})
    outcome = project.run("run", ".", "--rate-limit-wait", "2", "-j", "2", "--json")
    assert outcome.data["cases"] == []
    assert outcome.data["stopped"]["kind"] == "quota"
    assert "nothing was accepted in 2 s of waiting" in outcome.data["stopped"]["message"]
    assert outcome.exit_code not in (0, 2)


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
    used = [about["usage"]["output_tokens"] for about in (grade, grade["simulator"])]
    assert used == [20, 40], "the agent's own are apart"
    raw = exported(project.latest_run()) / "trials/a/scripted/with_skill/1/raw/user"
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
    before = project.record("a/scripted/with_skill/1", run="out")
    set_mood(project)
    result = project.run_json("--resume", "out")
    assert [case["status"] for case in result["cases"]] == ["PASS", "PASS"]
    assert project.record("a/scripted/with_skill/1", run="out") == before
