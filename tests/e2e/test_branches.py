"""Branches with both real CLIs, against a scripted model server."""

from __future__ import annotations

import hashlib

import pytest

from tests.e2e.conftest import ENGINES, KEYS, Lab, both_sessions, remembering
from tests.support.model_server import Rule, Shell, Text, WriteFile

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


answer = remembering(
    Rule(r"^write", [WriteFile("a.log", "x"), Text("Written.")]),
    Rule(r"^delete", [Text("Are you sure?")]),
    Rule(r"^yes", [Shell("rm a.log"), Text("Deleted.")]),
)


@pytest.mark.slow
@both_sessions
@pytest.mark.parametrize("engine", ENGINES)
def test_what_branches_share_is_asked_once_and_each_goes_on_from_it(
    lab: Lab, engine: str, session: str
) -> None:
    project, server = lab(answer, {"cases/c.yaml": BRANCHED}, f"session: {session}\n")
    arguments = ("run", "cases", "-e", engine, "--json", "--keep-workspaces")
    outcome = project.run(*arguments, env=KEYS)
    grades = {case["case_id"]: case for case in outcome.data["cases"]}
    assert {name: grade["status"] for name, grade in grades.items()} == {
        "c/refuse": "PASS",
        "c/agree": "PASS",
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

    both = [project.record(f"c/{name}/{engine}/with_skill/1") for name in ("refuse", "agree")]
    assert all(turn["session_verified"] for one in both for turn in one["turns"][1:])
    parent = both[0]["turns"][1]["session"]
    assert both[1]["turns"][1]["session"] == parent
    assert parent["session_id"] not in {one["session_id"] for one in both}
    (file,) = [
        path
        for path in (project.latest_run() / "scratch").resolve().glob("*/shared-2/home/**/*.jsonl")
        if parent["session_id"] in path.name
    ]
    content = file.read_bytes()
    # A process that stayed may write a line when it ends.
    assert session == "live" or len(content) == parent["prefix_bytes"]
    content = content[: parent["prefix_bytes"]]
    assert hashlib.sha256(content).hexdigest() == parent["prefix_sha256"]
