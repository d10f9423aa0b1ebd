"""Branches and histories with both real CLIs, against a scripted model server."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.support.lab_profiles import ENGINES, KEYS, remembering
from tests.support.model_server import ModelServer, Rule, Shell, Text, WriteFile
from tests.support.project import Project

pytestmark = pytest.mark.e2e

BRANCHED = """
    input:
      turns:
        - content: write the log
          assertions: [{files_exist: [a.log]}]
        - content: delete it
          branches:
            - name: refuse
              turns: [no]
              assertions: [{files_exist: [a.log]}]
            - name: agree
              turns: ["yes", and now?]
              assertions: [{files_not_exist: [a.log]}]
    """
HISTORY = """
    input:
      history:
        - {role: user, content: I want to apply}
        - {role: assistant, content: Let me look., tool_calls: [{id: c1, kind: shell, arguments: {command: ls}}]}
        - {role: tool, call_id: c1, content: form.txt}
        - {role: assistant, content: Which stage is your company at?}
        - {role: user, content: Seed}
        - {role: assistant, content: "And where?", capture: [{variable: ask, pattern: '(where)'}]}
      prompt: In Berlin, and that is <<ask>>
    assertions: [{contains: "I want to apply | Seed | In Berlin, and that is where"}]
    """  # noqa: E501


@pytest.fixture
def engines(
    project: Project, lab_profiles: Callable[..., dict[str, str]]
) -> Callable[[str], Project]:
    """`engines(url)`: profiles `claude` and `codex` that talk to the server at `url`."""

    def write(url: str) -> Project:
        suite = "name: lab\ncases: {files: ['*.case.yaml']}\n"
        return project.write(lab_profiles(url) | {"cases/eval.yaml": suite})

    return write


answer = remembering(
    Rule(r"^write", [WriteFile("a.log", "x"), Text("Written.")]),
    Rule(r"^delete", [Text("Are you sure?")]),
    Rule(r"^yes", [Shell("rm a.log"), Text("Deleted.")]),
)


def record(project: Project, case: str, engine: str) -> Any:
    """The trial's record in the run directory `out`."""
    path = project.root / "out/trials" / case / engine / "with_skill/1/record.json"
    return json.loads(path.read_text(encoding="utf-8"))


@pytest.mark.slow
@pytest.mark.parametrize("engine", ENGINES)
def test_what_branches_share_is_asked_once_and_each_goes_on_from_it(
    engines: Callable[[str], Project], model_server: Callable[..., ModelServer], engine: str
) -> None:
    server = model_server(answer)
    project = engines(server.url).write({"cases/c.case.yaml": BRANCHED})
    arguments = ("run", "cases", "-e", engine, "--out", "out", "--json", "--keep-workspaces")
    outcome = project.run(*arguments, env=KEYS)
    grades = {case["case_id"]: case for case in outcome.data["cases"]}
    assert {name: grade["status"] for name, grade in grades.items()} == {
        "c.case/refuse": "PASS",
        "c.case/agree": "PASS",
    }, outcome.data

    asked = [request.user_texts for request in server.requests]
    shared = ["write the log", "delete it"]
    assert asked.count(["write the log"]) == 2  # the call, and what it gave back
    assert asked.count(shared) == 1
    assert asked.count([*shared, "no"]) == 1
    assert asked.count([*shared, "yes"]) == 2
    assert asked.count([*shared, "yes", "and now?"]) == 1
    for request in server.requests:
        if len(request.user_texts) > 2:
            said = request.assistant_texts[:2]
            assert said == ["Written.", "Are you sure?"]
            assert any(entry.role == "result" for entry in request.entries)

    both = [record(project, f"c.case/{name}", engine) for name in ("refuse", "agree")]
    assert all(turn["session_verified"] for one in both for turn in one["turns"][1:])
    parent = both[0]["turns"][1]["session"]
    assert both[1]["turns"][1]["session"] == parent
    assert parent["session_id"] not in {one["session_id"] for one in both}
    (file,) = [
        path
        for path in (project.root / "out/scratch").resolve().glob("*/shared-2/home/**/*.jsonl")
        if parent["session_id"] in path.name
    ]
    content = file.read_bytes()
    assert len(content) == parent["prefix_bytes"]
    assert hashlib.sha256(content).hexdigest() == parent["prefix_sha256"]


@pytest.mark.parametrize("engine", ["codex"])
def test_trials_share_the_turns_before_the_one_they_begin_with(
    engines: Callable[[str], Project], model_server: Callable[..., ModelServer], engine: str
) -> None:
    server = model_server(answer)
    case = "input: {turns: [one, two, three]}\nassertions: [{contains: one | two | three}]\n"
    project = engines(server.url).write({"cases/c.case.yaml": case})
    result = project.run_json(
        "cases", "-e", engine, "--trials", "3", "--trials-from-turn", "3", env=KEYS
    )
    assert result["summary"]["pass"] == 3, result
    asked = [len(request.user_texts) for request in server.requests]
    assert sorted(asked) == [1, 2, 3, 3, 3]


@pytest.mark.slow
@pytest.mark.parametrize("engine", ENGINES)
def test_a_history_is_what_the_first_request_holds_and_costs_nothing(
    engines: Callable[[str], Project], model_server: Callable[..., ModelServer], engine: str
) -> None:
    server = model_server(answer)
    project = engines(server.url).write({"cases/c.case.yaml": HISTORY})
    result = project.run_json("cases", "-e", engine, env=KEYS)
    assert result["summary"]["pass"] == 1, result
    (request,) = server.requests
    steps = request.conversation
    assert [text for role, text in steps if role == "user"] == [
        "I want to apply", "Seed", "In Berlin, and that is where",
    ]  # fmt: skip
    order = [role for role, _ in steps]
    assert order == [
        "user",
        "assistant",
        "call",
        "result",
        "assistant",
        "user",
        "assistant",
        "user",
    ]
    assert steps[3][1].endswith("form.txt")
