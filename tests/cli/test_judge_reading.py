"""`skillup judge` where a model or a script judges: stored answers first, nobody asked twice."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

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


def right(request: ModelRequest) -> Reply:
    del request
    return Structured(PASS)


def held(project: Project, *arguments: str) -> None:
    outcome = project.run("run", "cases", "--out", "run", *arguments, env=KEYS)
    assert outcome.exit_code == 0, outcome.stderr


def test_answers_of_the_run_are_read_and_nobody_is_asked(project: Project) -> None:
    with ModelServer(right) as server:
        judge = {"model": "anthropic:judge-1", "base_url": server.url}
        project.write({"cases/eval.yaml": json.dumps({"name": "logs", "judge": judge})})
        held(project, "--trials", "10")
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
    held(project)
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
    held(project)
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
    held(project)
    path.write_text(script.replace("true", "false").replace("1.0", "0.0"), "utf-8")
    as_before = project.run("judge", "run")
    assert as_before.exit_code == 0, as_before.stderr
    edited = project.run("judge", "run", "--cases", "cases")
    assert edited.exit_code == 1, edited.stderr
    assert "pass → fail" in edited.stderr
