"""Refusals met on several workers: one slow-down for all of them, as on one machine."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.dask_cluster import DaskCluster
from tests.support.moody import set_mood
from tests.support.project import Project

OUT = ".skillup/runs/out"
# Is refused at once, and asks for more patience than the other needs for its first message.
REFUSED = """
    input: {prompt: go}
    assertions: [{contains: ok}]
    scripted:
      - say: ok
        misbehave: {error: rate_limit, message: "try again in 12 s", times: 1}
    """
# Is answered once the other's refusal has come to the client; only then has it a second message.
MEANWHILE = """
    input: {turns: [one, two]}
    assertions: [{contains: ok}]
    scripted:
      - turn: 1
        say: ok
        steps: [{run: 'touch "BEGUN"; until grep -q message_refused "EVENTS"; do sleep 0.05; done'}]
      - {turn: 2, say: ok}
    """
# Its judge is refused, by the provider that the others send their messages to.
JUDGED = """
    input: {prompt: go}
    judges:
      - type: agent_judge
        criteria: [{id: said, outcome: it answered}]
        scripted:
          - say: '{"criteria": [{"id": "said", "pass": true, "reason": "so", "evidence": []}]}'
            misbehave: {error: rate_limit, message: "try again in 12 s", times: 1}
    scripted: [{say: ok, steps: [{run: 'until test -e "BEGUN"; do sleep 0.05; done'}]}]
    """
# The client has heard of a refused question once its raw output has been set aside.
UNTIL_JUDGE_REFUSED = """
    input: {turns: [one, two]}
    assertions: [{contains: ok}]
    scripted:
      - turn: 1
        say: ok
        steps:
          - run: |
              touch "BEGUN"
              until find "TMP" -name "*.refused-1.*" | grep -q .; do sleep 0.05; done
      - {turn: 2, say: ok}
    """
SPENT = """
    input: {turns: [one, two, three]}
    assertions: [{contains: ok}]
    scripted:
      - {turn: 2, say: ok, steps: [{run: 'until test -e "BEGUN"; do sleep 0.05; done'}]}
      - {turn: 3, say: ok}
      - {say: ok}
    """


@pytest.fixture
def two(cluster: DaskCluster) -> tuple[str, ...]:
    """Two workers with a place each; how to hold a run there."""
    cluster.start_worker("one")
    cluster.start_worker("two")
    return ("--executor", "dask", "--scheduler", cluster.address, "--out", OUT)


def events(project: Project, kind: str) -> list[dict[str, Any]]:
    return [event for event in project.journal() if event["event"] == kind]


def meanwhile(project: Project) -> str:
    events = str(project.root / OUT / "events.jsonl")
    return MEANWHILE.replace("EVENTS", events).replace("BEGUN", str(project.root / "begun"))


def test_a_refusal_on_one_worker_keeps_back_the_messages_of_another(
    project: Project, two: tuple[str, ...]
) -> None:
    project.write({"eval.yaml": "name: x\n", "a.yaml": REFUSED, "b.yaml": meanwhile(project)})
    outcome = project.run("run", ".", *two, "--json")
    assert outcome.exit_code == 0, outcome.stderr
    assert len({event["worker"] for event in events(project, "trial_sent")}) == 2
    (refused,) = events(project, "message_refused")
    assert refused["job"] == "a/scripted/with_skill/1"
    (first,) = project.record("a/scripted/with_skill/1")["turns"]
    assert "refused the message once (rate_limit)" in first["notes"][0]
    # The second message, or the first, if that worker was slow to begin.
    (note,) = [n for t in project.record("b/scripted/with_skill/1")["turns"] for n in t["notes"]]
    assert note.endswith("the provider had refused others")


def test_a_judge_that_is_refused_on_one_worker_keeps_back_the_messages_of_another(
    project: Project, cluster: DaskCluster, two: tuple[str, ...]
) -> None:
    begun = str(project.root / "begun")
    waits = UNTIL_JUDGE_REFUSED.replace("TMP", str(cluster.root / "tmp")).replace("BEGUN", begun)
    judged = JUDGED.replace("BEGUN", begun)
    project.write({"eval.yaml": "name: x\n", "a.yaml": judged, "b.yaml": waits})
    outcome = project.run("run", ".", *two, "--json")
    assert outcome.exit_code == 0, outcome.stderr
    assert len({event["worker"] for event in events(project, "trial_sent")}) == 2
    _, second = project.record("b/scripted/with_skill/1")["turns"]
    assert [note.endswith("the provider had refused others") for note in second["notes"]] == [True]


def test_a_quota_met_on_one_worker_leaves_the_trials_of_another_and_the_run_can_go_on(
    project: Project, two: tuple[str, ...]
) -> None:
    spent = SPENT.replace("BEGUN", str(project.root / "begun"))
    project.write({"eval.yaml": "name: x\n", "a.yaml": spent, "b.yaml": meanwhile(project)})
    set_mood(project, 3, error="quota")
    left = project.run("run", ".", "-e", "moody", *two, "--json")
    jobs = ["a/moody/with_skill/1", "b/moody/with_skill/1"]
    assert (left.exit_code, left.data["cases"], left.data["not_run"]) == (3, [], jobs), left.stderr
    assert left.data["stopped"]["kind"] == "quota"
    assert sorted(event["job"] for event in events(project, "trial_left")) == jobs
    assert events(project, "trial_lost") == []

    set_mood(project)
    ended = project.run("run", "--resume", OUT, *two[:4], "--json")
    assert [case["status"] for case in ended.data["cases"]] == ["PASS", "PASS"], ended.stderr
    why = "its session is not on the worker that holds it now"
    assert [project.record(job)["notes"] for job in jobs] == [
        [f"begun anew with turn 1, not resumed after {after}: {why}"]
        for after in ("turn 2", "turn 1")
    ]
