"""`skillup judge --show-prompt` and `--estimate`: what would be asked, and nobody is."""

from __future__ import annotations

import json

import pytest

from tests.support.asking import KEYS
from tests.support.model_server import ModelRequest, ModelServer, Reply, Structured
from tests.support.project import Project
from tests.support.stored import content_of

SUITE = """
    name: logs
    judge: {model: "scripted:judges/own.yaml"}
"""
CASE = r"""
    expect:
      rubric: It asks first
    input:
      turns:
        - content: "Delete the logs \e[31m"
          assertions:
            - It names the folder
            - script: {path: never.sh}
    judge:
      type: agent_judge
      engine: scripted
      scripted: [{say: "never"}]
      criteria: [{outcome: It kept the logs}]
    scripted: [{turn: 1, say: "Shall I delete data/?"}]
"""
OWN = """
    criteria:
      - {when: asks first, found: shall i}
      - {when: the folder, found: data/}
"""


def answering(request: ModelRequest) -> Reply:
    said = {"id": "c1", "verdict": "pass", "reason": "So it is.", "quote": "Shall I"}
    return Structured({"verdicts": [said]})


@pytest.fixture
def project(project: Project) -> Project:
    project.write({"cases/eval.yaml": SUITE, "cases/judges/own.yaml": OWN, "cases/a.yaml": CASE})
    return project.write({"cases/never.sh": "#!/bin/sh\ntouch ran\nexit 0\n"})


def test_questions_are_shown_and_nobody_is_asked(project: Project) -> None:
    (project.root / "cases/never.sh").chmod(0o755)
    run = project.run("run", "--out", "run")
    assert run.exit_code in (1, 3), run.stderr
    before = content_of(project.root / "run")

    lines = project.run("judge", "run", "--show-prompt", "--json").stdout.splitlines()
    known = [json.loads(line) for line in lines]
    of_models = [one for one in known if "prompt" in one["asked"]]
    assert {one["stored"] is not None for one in of_models} == {True}
    assert any("It names the folder" in one["asked"]["prompt"] for one in of_models)
    (of_agent,) = (one for one in known if "question" in one["asked"])
    assert (of_agent["stored"], "It kept the logs" in of_agent["asked"]["question"]) == (None, True)

    shown = project.run("judge", "run", "--show-prompt")
    assert (shown.exit_code, "\x1b" in shown.stdout) == (0, False)
    for text in (known[0]["key"], "stored answer", "no answer is stored", "impartial judge"):
        assert text in shown.stdout
    assert "1 without an answer" in shown.stderr
    assert content_of(project.root / "run") == before

    with ModelServer(answering) as server:
        env = {**KEYS, "ANTHROPIC_BASE_URL": server.url}
        options = ("--judge-model", "anthropic:claude-haiku-4-5", "--estimate", "--json")
        first = project.run("judge", "run", *options, env=env).data
        assert server.requests == []
        # The gate's answer decides whether the agent is asked.
        assert list(first) == ["anthropic:claude-haiku-4-5"]
        haiku = first["anthropic:claude-haiku-4-5"]
        assert (haiku["questions"], haiku["stored"]) == (2, 0)
        assert 200 < haiku["input_tokens"] < 5000
        assert haiku["input_cost_usd"] == pytest.approx(haiku["input_tokens"] / 1e6)
        project.run("judge", "run", *options[:2], env=env)
        asked = len(server.requests)
        again = project.run("judge", "run", *options, env=env).data
        assert len(server.requests) == asked == 2
    assert list(again) == ["anthropic:claude-haiku-4-5", "agent scripted"]
    haiku = again["anthropic:claude-haiku-4-5"]
    assert (haiku["questions"], haiku["stored"], haiku["input_tokens"]) == (2, 2, 0)
    table = project.run("judge", "run", "--estimate").stdout
    assert "their cost" in table
