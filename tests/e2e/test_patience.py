"""The real CLIs and a provider that refuses in the middle of a conversation."""

from __future__ import annotations

import json
import time
from functools import partial
from typing import Any

import pytest

from tests.e2e.conftest import KEYS, Lab, both_sessions, remembering
from tests.support.model_server import HttpError, ModelRequest, Reply, Rule, Text, WriteFile
from tests.support.project import Project
from tests.support.stored import content_of

pytestmark = pytest.mark.e2e

CASES = {
    "cases/a.yaml": """
    input:
      turns:
        - content: write one
        - content: two
        - content: three
    assertions: [{files_exist: [out.txt]}, {contains: "write one | two | three"}]
    """
}


remember = remembering(Rule(r"^write", [WriteFile("out.txt", "hello"), Text("Wrote it.")]))


def events(project: Project, name: str) -> list[Any]:
    return [event for event in project.journal() if event["event"] == name]


def may_be_refused(broke: list[bool], request: ModelRequest) -> Reply:
    """Turn 2 costs more than there is while `broke` says so."""
    if broke[0] and request.latest == "two":
        return HttpError(402, "no credits")
    return remember(request)


@pytest.mark.slow
@pytest.mark.parametrize(("engine", "status"), [("claude", 529), ("codex", 429)])
def test_a_message_that_was_refused_is_sent_again_in_the_session_as_it_was(
    lab: Lab, engine: str, status: int
) -> None:
    """In a process that stays it is the same: test_live.py."""
    refused: list[ModelRequest] = []

    def refusing(request: ModelRequest) -> Reply:
        if request.latest == "two" and not refused:
            refused.append(request)
            return HttpError(status, "slow down")
        return remember(request)

    project, server = lab(refusing, CASES)
    result = project.run_json("cases", "-e", engine, env=KEYS)
    case = result["cases"][0]
    assert case["status"] == "PASS", case
    record = project.record(f"a/{engine}/with_skill/1")
    assert record["attempt"] == 1
    assert [turn["session_verified"] for turn in record["turns"]] == [None, True, True]
    (note,) = [n for n in record["turns"][1]["notes"] if "refused" in n]
    assert note.startswith("the provider refused the message once")
    asked = [request.user_texts for request in server.requests]
    assert asked.count(["write one"]) == 2  # and once more with the tool's result
    assert asked.count(["write one", "two"]) == 2
    assert asked.count(["write one", "two", "three"]) == 1
    assert len(asked) == 5


@both_sessions
@pytest.mark.parametrize("engine", [pytest.param("claude", marks=pytest.mark.slow), "codex"])
def test_after_a_quota_in_turn_2_resuming_goes_on_with_turn_2(
    lab: Lab, engine: str, session: str
) -> None:
    broke = [True]
    project, server = lab(partial(may_be_refused, broke), CASES, f"session: {session}\n")
    outcome = project.run("run", "cases", "-e", engine, "--json", env=KEYS)
    run = project.latest_run()
    assert outcome.data["cases"] == []
    assert outcome.data["stopped"]["kind"] == "quota"
    assert [e["job"] for e in events(project, "trial_left")] == [f"a/{engine}/with_skill/1"]
    broke[0] = False
    before = len(server.requests)
    outcome = project.run("run", "--resume", str(run), "--json", env=KEYS)
    assert outcome.exit_code == 0, outcome.stderr
    asked = [request.user_texts for request in server.requests[before:]]
    assert asked == [["write one", "two"], ["write one", "two", "three"]]
    record = project.record(f"a/{engine}/with_skill/1")
    assert record["notes"] == [
        "resumed after turn 1: turn 1 was run by an earlier start of the run"
    ]
    assert [turn["session_verified"] for turn in record["turns"]] == [None, True, True]
    assert len({turn["session_id"] for turn in record["turns"]}) == 1
    assert [turn["usage"]["output_tokens"] for turn in record["turns"]] == [20, 10, 10]
    assert not (run / "scratch").exists()


@pytest.mark.slow
def test_a_scratch_that_is_kept_holds_no_login(lab: Lab) -> None:
    broke = [True]
    project, _ = lab(partial(may_be_refused, broke), CASES)
    token = "sk-ant-oat01-lab-0123456789abcdef"
    login = {"accessToken": token, "refreshToken": "sk-ant-ort01-lab-fedcba9876543210"}
    login |= {"expiresAt": round((time.time() + 9e5) * 1000), "scopes": ["user:inference"]}  # type: ignore[dict-item]
    (project.home / ".claude").mkdir()
    (project.home / ".claude" / ".credentials.json").write_text(
        json.dumps({"claudeAiOauth": login}), encoding="utf-8"
    )
    project.run("run", "cases", "-e", "claude", "--json")
    run = project.latest_run()
    (scratch,) = (run / "scratch").resolve().iterdir()
    kept = [path for path in scratch.rglob("*") if path.is_file()]
    assert any(path.suffix == ".jsonl" and "projects" in path.parts for path in kept)
    assert not [path for path in kept if token.encode() in path.read_bytes()]
    assert token.encode() not in content_of(run)
    broke[0] = False
    outcome = project.run("run", "--resume", str(run), "--json")
    assert outcome.exit_code == 0, outcome.data
    assert [e["after_turn"] for e in events(project, "trial_continued")] == [1]
