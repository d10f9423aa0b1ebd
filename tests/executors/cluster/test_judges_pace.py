"""Agents that judge and play users on workers: refused there, waited for by the whole run."""

from __future__ import annotations

from tests.support.dask_cluster import DaskCluster
from tests.support.project import Project

OUT = ".skillup/runs/out"
SUITE = """
    name: d
    user_simulator:
      engine: scripted
      scripted:
        - {turn: 1, say: '{"message": "Renew it."}', misbehave: {error: overloaded, times: 1}}
        - turn: 2
          say: '{"stop": "completed", "reason": "done"}'
          misbehave: {error: rate_limit, times: 1}
    """
CASE = """
    input:
      conversation: {max_turns: 3, persona: {objective: renew the card}}
    judge:
      type: agent_judge
      criteria: [it was renewed]
      scripted:
        - misbehave: {error: KIND, times: 1}
          say: >
            {"criteria": [{"id": "criterion-1", "pass": true, "reason": "so", "evidence": []}]}
    scripted: [{say: It is renewed.}]
    """


def test_what_refuses_a_judge_and_a_user_on_a_worker_is_waited_out(
    project: Project, cluster: DaskCluster
) -> None:
    cluster.start_worker("one")
    project.write({"eval.yaml": SUITE, "a.yaml": CASE.replace("KIND", "rate_limit")})
    dask = ("--executor", "dask", "--scheduler", cluster.address, "--out", OUT)
    (grade,) = project.run("run", ".", *dask, "--json").data["cases"]
    assert grade["status"] == "PASS", grade
    assert grade["simulator"]["stop"] == "completed"
    raw = project.root / OUT / "trials/a/scripted/with_skill/1/raw/user"
    assert len(list(raw.glob("*.refused-1.stdout.jsonl"))) == 2


def test_a_judge_on_a_worker_that_finds_no_allowance_ends_the_run(
    project: Project, cluster: DaskCluster
) -> None:
    cluster.start_worker("one")
    case = CASE.replace("KIND, times: 1", "quota")
    project.write({"eval.yaml": SUITE, "a.yaml": case, "b.yaml": case})
    dask = ("--executor", "dask", "--scheduler", cluster.address, "--out", OUT)
    outcome = project.run("run", ".", *dask, "-j", "1", "--json")
    (grade,) = outcome.data["cases"]
    assert grade["status"] == "ERROR"
    assert "the allowance is used up" in grade["error"]["message"]
    assert outcome.data["stopped"]["kind"] == "quota"


def test_a_user_on_a_worker_that_finds_no_allowance_leaves_the_trial_for_later(
    project: Project, cluster: DaskCluster
) -> None:
    cluster.start_worker("one")
    suite = SUITE.replace("rate_limit, times: 1", "quota")
    project.write({"eval.yaml": suite, "a.yaml": CASE.replace("KIND", "rate_limit")})
    dask = ("--executor", "dask", "--scheduler", cluster.address, "--out", OUT)
    outcome = project.run("run", ".", *dask, "--json")
    assert (outcome.data["cases"], outcome.data["stopped"]["kind"]) == ([], "quota")
    assert outcome.data["not_run"] == ["a/scripted/with_skill/1"]
