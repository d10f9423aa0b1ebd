"""Branches with both real CLIs, against a scripted model server."""

from __future__ import annotations

import hashlib

import pytest

from tests.e2e.conftest import ENGINES, KEYS, Lab, remembering
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
@pytest.mark.parametrize("engine", ENGINES)
def test_what_branches_share_is_asked_once_and_each_goes_on_from_it_in_a_process_that_stays(
    lab: Lab, engine: str
) -> None:
    """With a process a turn: the conformance, and test_placed_sessions.py."""
    project, server = lab(answer, {"cases/c.yaml": BRANCHED}, "session: live\n")
    result = project.run_json("cases", "-e", engine, "--keep-workspaces", env=KEYS)
    grades = {case["case_id"]: case["status"] for case in result["cases"]}
    assert grades == {"c/refuse": "PASS", "c/agree": "PASS"}, result

    asked = [request.user_texts for request in server.requests]
    shared = ["write the log", "delete it"]
    assert asked.count(["write the log"]) == 2  # the call, and what it gave back
    assert asked.count(shared) == 1
    assert asked.count([*shared, "no"]) == 1
    assert asked.count([*shared, "yes"]) == 2
    assert asked.count([*shared, "yes", "and now?"]) == 1
    for request in server.requests:
        if len(request.user_texts) > 2:
            assert request.assistant_texts[:2] == ["Written.", "Are you sure?"]
            assert any(entry.role == "result" for entry in request.entries)

    both = [project.record(f"c/{name}/{engine}/with_skill/1") for name in ("refuse", "agree")]
    assert all(turn["session_verified"] for one in both for turn in one["turns"][1:])
    parent = both[0]["turns"][1]["session"]
    assert both[1]["turns"][1]["session"] == parent
    assert parent["session_id"] not in {one["session_id"] for one in both}
    scratch = (project.latest_run() / "scratch").resolve()
    (file,) = scratch.glob(f"*/shared-2/home/**/*{parent['session_id']}*.jsonl")
    # A process that stayed may write a line when it ends.
    content = file.read_bytes()[: parent["prefix_bytes"]]
    assert hashlib.sha256(content).hexdigest() == parent["prefix_sha256"]
