"""Judging that was cut off and goes on: what was asked before counts once, as if undisturbed."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from tests.support.asking import KEYS, MODELS
from tests.support.model_server import Hang, ModelRequest, ModelServer, Reply, Structured
from tests.support.moody import set_mood
from tests.support.project import GUARD_SECONDS, Project

# The lots of the first rule let it answer the first of the two questions, not the second.
BY_AGENT = """
    input: {prompt: go}
    judges:
      - type: agent_judge
        engine: moody
        repeat: 2
        criteria: [{id: said, outcome: it answered}]
        scripted:
          - probability: 0.6
            say: &yes '{"criteria": [{"id": "said", "pass": true, "reason": "so"}]}'
          - {turn: 1, say: *yes}
    scripted: [{say: ok}]
    """
BY_MODEL = """
    input: {prompt: go}
    assertions:
      - It is answered
      - relevance: {}
    scripted: [{say: ok}]
    """
ARGUMENTS = ("--trials", "3", "--baseline", "-j", "3")


def judging(result: dict[str, Any]) -> list[Any]:
    """What judges took: in all, and by trial."""
    return [result["summary"]["judging"], *(case["judging"] for case in result["cases"])]


def kill_between_answers(project: Project, env: dict[str, str] | None = None) -> None:
    """Killed once the first answer of a judge is kept; it gets no second one."""
    kept = project.root / "out/judge-answers"
    with project.start("run", "cases", "--out", "out", env=env) as run:
        until = time.monotonic() + GUARD_SECONDS
        while not list(kept.glob("*.json")):
            assert run.poll() is None
            assert time.monotonic() < until
            time.sleep(0.02)
        run.kill()
        run.wait()


@pytest.fixture
def by_agent(project: Project) -> Project:
    set_mood(project)
    return project.write({"cases/eval.yaml": "name: d\n", "cases/a.yaml": BY_AGENT})


@pytest.mark.slow
def test_an_agent_that_meets_a_quota_at_its_second_question(by_agent: Project) -> None:
    undisturbed = judging(by_agent.run_json("cases", *ARGUMENTS))
    assert (undisturbed[0]["calls"], undisturbed[0]["cached_calls"]) == (12, 0)
    set_mood(by_agent, 1, error="quota")
    outcome = by_agent.run("run", "cases", *ARGUMENTS, "--out", "out", "--json")
    assert outcome.exit_code == 3, outcome.stderr
    assert outcome.data["stopped"]["kind"] == "quota"
    assert list((by_agent.root / "out/judge-answers").iterdir())
    # Still none, and then there is one: however often it goes on, each question counts once.
    assert by_agent.run("run", "--resume", "out").exit_code == 3
    set_mood(by_agent)
    assert judging(by_agent.run_json("--resume", "out")) == undisturbed
    assert judging(by_agent.run_json("--resume", "out")) == undisturbed


def test_budgets_count_what_an_earlier_start_asked(by_agent: Project) -> None:
    by_agent.write({"cases/b.yaml": BY_AGENT})
    set_mood(by_agent, 1, error="quota")
    assert by_agent.run("run", "cases", "-j", "1", "--out", "out").exit_code == 3
    set_mood(by_agent)
    # Three messages of 120 tokens: the agent's of the first case, and the two of its judge.
    data = by_agent.run_json("--resume", "out", "-j", "1", "--max-tokens", "360")
    assert [case["case_id"] for case in data["cases"]] == ["a"]
    assert (data["stopped"] or {}).get("kind") == "max_tokens"


@pytest.mark.slow
def test_a_model_when_the_run_is_killed_before_its_second_answer(project: Project) -> None:
    hangs = False

    def answer(request: ModelRequest) -> Reply:
        if "relevant" not in request.raw_text:
            verdict = {"id": "c1", "verdict": "pass", "reason": "It is.", "quote": "ok"}
            return Structured({"verdicts": [verdict]})
        return Hang() if hangs else Structured({"relevant": True, "reason": "It is."})

    with ModelServer(answer) as server:
        judge = {"model": MODELS["anthropic"], "base_url": server.url}
        project.write({"cases/a.yaml": BY_MODEL})
        project.write({"cases/eval.yaml": json.dumps({"name": "d", "judge": judge})})
        undisturbed = project.run_json("cases", "--no-judge-cache", env=KEYS)
        assert undisturbed["cases"][0]["status"] == "PASS", undisturbed["cases"][0]["reason"]
        hangs = True
        kill_between_answers(project, KEYS)
        hangs = False
        resumed = project.run_json("--resume", "out", env=KEYS)
    assert judging(resumed) == judging(undisturbed)
    assert resumed["cases"][0]["status"] == "PASS"
