"""Several suites in one run: each has its own written-down judge, and its own simulated user."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.support.asking import KEYS
from tests.support.model_server import HttpError, ModelServer, Structured
from tests.support.project import Project

STATUS = {"x/a": "PASS", "y/b": "FAIL"}


def verdict(said: str) -> dict[str, Any]:
    return {"verdicts": [{"id": "c1", "verdict": said, "reason": f"It is a {said}.", "quote": ""}]}


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """Two suites, which differ in what stands in `judges/` alone."""
    made = Project(tmp_path)
    turns = [{"content": "x", "assertions": ["it asks"]}, {"respond": "Say a word."}]
    for place, status in STATUS.items():
        said = status.lower()
        rules = [{"when": "it asks", "answer": verdict(said)}, {"answer": {"message": said}}]
        suite = {"name": place[0], "judge": {"model": "scripted:judges/j.yaml"}}
        case = {"input": {"turns": turns}, "scripted": [{"say": "ok"}]}
        made.write(
            {
                f"{place}/eval.yaml": json.dumps(suite),
                f"{place}/judges/j.yaml": json.dumps({"rules": rules}),
                f"{place}/case-{place[-1]}.yaml": json.dumps(case),
            }
        )
    return made


def test_neither_gets_the_others_answers_also_when_judged_elsewhere(project: Project) -> None:
    ran = project.run("run", "x/a", "y/b", "--out", "ran", "--json")
    cases = {case["case_id"]: case for case in ran.data["cases"]}
    for place, status in STATUS.items():
        case = cases[f"case-{place[-1]}"]
        assert case["status"] == status, ran.stderr
        assert case["turns"][1]["content"] == status.lower()
    (project.root / "ran").rename(project.root / "moved")
    for place in ("x", "y"):
        shutil.rmtree(project.root / place)
    again = project.run("judge", "moved", "--json")
    found = {c["grade"]["case_id"]: c["grade"]["status"] for c in again.data["cases"]}
    assert found == {"case-a": "PASS", "case-b": "FAIL"}, again.stderr


@pytest.mark.slow
def test_servers_of_the_environment_do_not_share_answers_and_a_run_keeps_its_own(
    project: Project,
) -> None:
    def run(server: ModelServer) -> bool:
        env = {**KEYS, "ANTHROPIC_BASE_URL": server.url}
        options = ("-k", "case-a", "--judge-model", "anthropic:m")
        (case,) = project.run_json("x/a", *options, env=env)["cases"]
        return bool(case["turns"][0]["checks"][0]["passed"])

    user = {"name": "x", "user_simulator": {"model": "scripted:judges/j.yaml"}}
    project.write({"x/a/eval.yaml": json.dumps(user)})
    with (
        ModelServer(lambda request: Structured(verdict("pass"))) as one,
        ModelServer(lambda request: Structured(verdict("fail"))) as other,
    ):
        assert [run(one), run(other), run(one)] == [True, False, True]
        assert (len(one.requests), len(other.requests)) == (2, 1)

    again = project.run("judge", str(project.latest_run()), "--json")
    assert again.data["cases"][0]["grade"]["status"] == "PASS", again.stderr


def test_what_failed_in_the_conversation_is_not_asked_again_for_the_grade(project: Project) -> None:
    gate = {"content": "x", "post_condition": {"rubric": "it asks"}}
    turns = [gate, "Go on."]
    case = {"input": {"turns": turns}, "scripted": [{"say": "ok"}]}
    project.write({"x/a/case-a.yaml": json.dumps(case)})
    with ModelServer(
        lambda request: Structured(verdict("pass")) if request.attempt else HttpError(400, "broken")
    ) as server:
        env = {**KEYS, "ANTHROPIC_BASE_URL": server.url}
        (ran,) = project.run_json("x/a", "--judge-model", "anthropic:m", env=env)["cases"]
    assert ran["status"] == "ERROR"
    assert "broken" in ran["error"]["message"]
    assert len(server.requests) == 1
