"""Judges that are models, on loopback and written down: in `skillup run`, then in `judge`."""

from __future__ import annotations

import json
import shutil
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
    if not (judge or "").startswith(("anthropic", "scripted")):  # those may yet come to be there
        assert said in project.run("validate", "cases").stderr


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


# `skillup judge`: stored answers first, nobody is asked twice.


def recorded(project: Project, *arguments: str) -> None:
    outcome = project.run("run", "cases", "--out", "run", *arguments, env=KEYS)
    assert outcome.exit_code == 0, outcome.stderr


def test_answers_of_the_run_are_read_and_nobody_is_asked(project: Project) -> None:
    with ModelServer(right) as server:
        judge = {"model": "anthropic:judge-1", "base_url": server.url}
        project.write({"cases/eval.yaml": json.dumps({"name": "logs", "judge": judge})})
        recorded(project, "--trials", "10")
        asked = len(server.requests)
    shutil.rmtree(project.root / "cases")
    shutil.rmtree(project.root / ".skillup", ignore_errors=True)
    assert asked == 1
    # The server is gone: to ask would be an error.
    outcome = project.run("judge", "run", "--json", env=KEYS)
    assert outcome.exit_code == 0, outcome.stderr
    cases = outcome.data["cases"]
    assert [case["grade"]["trial"] for case in cases] == list(range(1, 11))
    assert [case["grade"]["status"] for case in cases] == ["PASS"] * 10


def test_an_edited_criterion_is_asked_and_flips(project: Project) -> None:
    rules = [
        {"when": "asks before it deletes", "answer": PASS},
        {
            "when": "names the folder",
            "answer": {
                "verdicts": [{"id": "c1", "verdict": "fail", "reason": "It does not.", "quote": ""}]
            },
        },
    ]
    suite = {"name": "logs", "judge": {"model": "scripted:judges/logs.yaml"}}
    project.write(
        {
            "cases/eval.yaml": json.dumps(suite),
            "cases/judges/logs.yaml": json.dumps({"rules": rules}),
        }
    )
    recorded(project)
    project.write({"cases/a.yaml": CASE.replace("asks before it deletes", "names the folder")})
    shown = project.run("show", "run", "a", "--full").stdout
    assert f"found    {PASS['verdicts'][0]['reason']}" in shown  # J4: reasons of passes, too
    outcome = project.run("judge", "run", "--cases", "cases")
    assert outcome.exit_code == 1, outcome.stderr
    assert "PASS → FAIL" in outcome.stderr
    assert "names the folder" in outcome.stderr
    assert "judges that read: calls 1, of them stored 0, tokens " in outcome.stderr
    data = project.run("judge", "run", "--cases", "cases", "--json").data
    assert data["judging"]["calls"] == 1


def test_another_model_is_asked_and_outranks_the_recorded_and_the_edited_case(
    project: Project,
) -> None:
    fail = {"verdicts": [{"id": "c1", "verdict": "fail", "reason": "It does not.", "quote": ""}]}
    for name, answer in (("mild", PASS), ("strict", fail)):
        rule = {"when": "asks before it deletes", "answer": answer}
        project.write({f"cases/judges/{name}.yaml": json.dumps({"rules": [rule]})})
    suite = {"name": "logs", "judge": {"model": "scripted:judges/mild.yaml"}}
    project.write({"cases/eval.yaml": json.dumps(suite)})
    recorded(project)
    for options in ([], ["--cases", "cases"]):
        strictly = project.run(
            "judge", "run", *options, "--judge-model", "scripted:judges/strict.yaml", "--json"
        )
        assert strictly.exit_code == 1, strictly.stderr
        assert strictly.data["judge_model"] == "scripted:judges/strict.yaml"
        (case,) = strictly.data["cases"]
        assert case["changes"]["status"] == {"before": "PASS", "after": "FAIL"}
    with ModelServer(right) as server:
        asked = ("judge", "run", "--judge-model", "anthropic:judge-1", "--json")
        env = {**KEYS, "ANTHROPIC_BASE_URL": server.url}
        (case,) = project.run(*asked, env=env).data["cases"]
        assert case["grade"]["judging"]["models"] == ["judge-1"]
        # Its answer is kept in the run.
        assert project.run(*asked, env=env).exit_code == 0
        assert len(server.requests) == 1
    assert project.run("judge", "run", "--json").data["judge_model"] is None


def test_a_script_that_was_edited_judges_anew_and_the_recorded_one_as_before(
    project: Project,
) -> None:
    script = '#!/bin/sh\necho \'{"passed": true, "score": 1.0, "reason": "yes"}\'\n'
    path = project.root / "cases/check.sh"
    project.write(
        {
            "cases/eval.yaml": "name: logs\n",
            "cases/a.yaml": CASE.replace(
                "[It asks before it deletes]", "[{script: {path: check.sh}}]"
            ),
            "cases/check.sh": script,
        }
    )
    path.chmod(0o755)
    recorded(project)
    path.write_text(script.replace("true", "false").replace("1.0", "0.0"), "utf-8")
    as_before = project.run("judge", "run")
    assert as_before.exit_code == 0, as_before.stderr
    edited = project.run("judge", "run", "--cases", "cases")
    assert edited.exit_code == 1, edited.stderr
    assert "pass → fail" in edited.stderr
