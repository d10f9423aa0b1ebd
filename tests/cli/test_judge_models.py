"""`skillup run` with judges that are models: on loopback, and written down."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.asking import KEYS
from tests.support.model_server import ModelRequest, ModelServer, Reply, Structured
from tests.support.project import Project

CASE = """
    input:
      turns:
        - content: Delete the logs
          assertions: [It asks before it deletes]
    scripted: [{say: "Shall I delete 3 logs?"}]
    """
PASS = {
    "verdicts": [
        {"id": "c1", "verdict": "pass", "reason": "It asks.", "quote": "Shall I delete 3 logs?"}
    ]
}


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path).write({"cases/a.yaml": CASE})


def suite(project: Project, **judge: object) -> None:
    project.write({"cases/eval.yaml": json.dumps({"name": "logs", "judge": judge})})


def by_script(project: Project, answer: object = PASS) -> None:
    """The suite's judge is written down."""
    suite(project, model="scripted:judges/logs.yaml")
    rule = {"when": "asks before it deletes", "answer": answer}
    project.write({"cases/judges/logs.yaml": json.dumps({"rules": [rule]})})


def run(project: Project, *options: str, env: dict[str, str] | None = None) -> Any:
    (case,) = project.run_json("cases", *options, env={**KEYS, **(env or {})})["cases"]
    return case


def right(request: ModelRequest) -> Reply:
    return Structured(PASS)


@pytest.mark.slow
@pytest.mark.parametrize("provider", ["anthropic", "openai-responses", "openai-chat"])
def test_a_model_on_loopback_judges(project: Project, provider: str) -> None:
    with ModelServer(right) as server:
        path = "" if provider == "anthropic" else "/v1"
        suite(project, model=f"{provider}:judge-1", base_url=server.url + path)
        case = run(project)
    assert (case["status"], case["error"]) == ("PASS", None)
    assert (case["judging"]["calls"], case["judging"]["cached_calls"]) == (1, 0)
    assert case["judging"]["models"] == ["judge-1"]
    assert case["judging"]["usage"]["requests"] == 1
    assert case["usage"]["input_tokens"] == 100, "the agent's own"
    assert len(server.requests) == 1
    (answer,) = (project.latest_run() / "judge-answers").iterdir()
    assert json.loads(answer.read_text())["answer"] == PASS


@pytest.mark.slow
def test_what_another_run_has_asked_is_not_asked_again(project: Project) -> None:
    with ModelServer(right) as server:
        suite(project, model="anthropic:judge-1", base_url=server.url)
        run(project)
        again = run(project)
        assert again["judging"]["calls"] == again["judging"]["cached_calls"] > 0
        assert again["judging"]["usage"] is None
        assert len(server.requests) == 1
        anew = run(project, "--no-judge-cache")
    assert anew["judging"]["cached_calls"] == anew["judging"]["calls"] - 1
    assert len(server.requests) == 2


@pytest.mark.parametrize(
    ("judge", "said"),
    [
        (None, "`rubric` is read by a model, and none is named"),
        ("anthropic:judge-1", "needs a key: set the variable ANTHROPIC_API_KEY"),
        ("scripted:judges/none.yaml", "there is no judge script"),
        ("judge-1", "`judge-1` names no model"),
    ],
)
def test_what_is_missing_is_found_before_the_first_turn(
    project: Project, judge: str | None, said: str
) -> None:
    suite(project, **({"model": judge} if judge else {}))
    (case,) = project.run_json("cases")["cases"]
    assert (case["status"], case["error"]["kind"]) == ("ERROR", "judge")
    assert said in case["error"]["message"]
    assert case["turns"] == []


def test_keys_are_nowhere_in_the_run(project: Project) -> None:
    key = "the-judges-own-key"
    with ModelServer(right) as server:
        suite(project, model="anthropic:judge-1", base_url=server.url, api_key_env="JUDGES")
        project.write({"cases/a.yaml": CASE.replace("Delete the logs", f"Delete the logs {key}")})
        run(project, env={"JUDGES": key})
    assert key in str(server.requests[0].headers)
    files = [path for path in project.latest_run().rglob("*") if path.is_file()]
    assert [path for path in files if key.encode() in path.read_bytes()] == []


FOLLOWED = """
    input:
      turns:
        - content: Delete the logs
          assertions:
            - rubric: It asks before it deletes
              prompt: Are you sure?
              assertions: [contains: helped]
        - Thanks
    scripted: [{when: sure, say: That helped.}, {say: Deleted.}]
    """


def test_a_judge_that_fails_while_it_decides_what_is_said_next_is_an_error(
    project: Project,
) -> None:
    project.write({"cases/a.yaml": FOLLOWED})
    suite(project, model="scripted:judges/logs.yaml")
    project.write({"cases/judges/logs.yaml": "rules: [{error: out of order}]\n"})

    case = run(project)

    assert (case["status"], case["error"]["kind"]) == ("ERROR", "judge")
    first = case["turns"][0]
    assert (first["status"], first["error"]["kind"]) == ("error", "judge")
    assert "out of order" in first["error"]["message"]
    assert first["follow_ups"] == []
