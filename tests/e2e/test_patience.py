"""The real CLIs and a provider that refuses in the middle of a conversation."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.lab_profiles import KEYS, remembering
from tests.support.model_server import (
    HttpError,
    ModelRequest,
    ModelServer,
    Reply,
    Rule,
    Text,
    WriteFile,
)
from tests.support.project import Project

pytestmark = pytest.mark.e2e

CASE = """
    input:
      turns:
        - content: write one
        - content: two
        - content: three
    assertions: [{files_exist: [out.txt]}, {contains: "write one | two | three"}]
    """


@pytest.fixture
def project_at(
    project: Project, lab_profiles: Callable[..., dict[str, str]]
) -> Callable[[str], Project]:
    """Profiles `claude` and `codex` that talk to the server at the URL, and one case."""

    def write(url: str) -> Project:
        suite = {"cases/eval.yaml": "name: lab\n", "cases/a.yaml": CASE}
        return project.write(lab_profiles(url) | suite)

    return write


remember = remembering(Rule(r"^write", [WriteFile("out.txt", "hello"), Text("Wrote it.")]))


def events(run: Path, name: str) -> list[dict[str, Any]]:
    lines = (run / "events.jsonl").read_text(encoding="utf-8").splitlines()
    return [event for event in map(json.loads, lines) if event["event"] == name]


def record_of(run: Path, engine: str) -> dict[str, Any]:
    path = run / "trials" / "a" / engine / "with_skill" / "1" / "record.json"
    found = json.loads(path.read_text(encoding="utf-8"))
    assert isinstance(found, dict)
    return found


@pytest.mark.slow
@pytest.mark.parametrize(("engine", "status"), [("claude", 529), ("codex", 429)])
def test_a_message_that_was_refused_is_sent_again_in_the_session_as_it_was(
    project_at: Callable[[str], Project],
    model_server: Callable[..., ModelServer],
    engine: str,
    status: int,
) -> None:
    def refusing(request: ModelRequest) -> Reply:
        # Refused once; a request with the same conversation in the same session is the second one.
        if request.latest == "two" and request.attempt == 0:
            return HttpError(status, "slow down")
        return remember(request)

    server = model_server(refusing)
    project = project_at(server.url)
    result = project.run_json("cases", "-e", engine, "--out", "out", env=KEYS)
    case = result["cases"][0]
    assert case["status"] == "PASS", case
    record = record_of(project.root / "out", engine)
    assert record["attempt"] == 1
    assert [turn["session_verified"] for turn in record["turns"]] == [None, True, True]
    (note,) = [n for n in record["turns"][1]["notes"] if "refused" in n]
    assert note.startswith("the provider refused the message once")
    asked = [request.user_texts for request in server.requests]
    assert asked.count(["write one"]) == 2  # and once more with the tool's result
    assert asked.count(["write one", "two"]) == 2
    assert asked.count(["write one", "two", "three"]) == 1
    assert len(asked) == 5


@pytest.mark.parametrize("engine", [pytest.param("claude", marks=pytest.mark.slow), "codex"])
def test_after_a_quota_in_turn_2_resuming_goes_on_with_turn_2(
    project_at: Callable[[str], Project], model_server: Callable[..., ModelServer], engine: str
) -> None:
    broke = [True]

    def paid(request: ModelRequest) -> Reply:
        if broke[0] and request.latest == "two":
            return HttpError(402, "no credits")
        return remember(request)

    server = model_server(paid)
    project = project_at(server.url)
    run = project.root / "out"
    outcome = project.run("run", "cases", "-e", engine, "--out", "out", "--json", env=KEYS)
    assert outcome.data["cases"] == []
    assert outcome.data["stopped"]["kind"] == "quota"
    assert [e["job"] for e in events(run, "trial_left")] == [f"a/{engine}/with_skill/1"]
    broke[0] = False
    before = len(server.requests)
    outcome = project.run("run", "--resume", "out", "--json", env=KEYS)
    assert outcome.exit_code == 0, outcome.stderr
    asked = [request.user_texts for request in server.requests[before:]]
    assert asked == [["write one", "two"], ["write one", "two", "three"]]
    record = record_of(run, engine)
    assert record["notes"] == [
        "resumed after turn 1: turn 1 was run by an earlier start of the run"
    ]
    assert [turn["session_verified"] for turn in record["turns"]] == [None, True, True]
    assert len({turn["session_id"] for turn in record["turns"]}) == 1
    assert [turn["usage"]["output_tokens"] for turn in record["turns"]] == [20, 10, 10]
    assert not (run / "scratch").exists()


@pytest.mark.slow
def test_a_scratch_that_is_kept_holds_no_login(
    project_at: Callable[[str], Project], model_server: Callable[..., ModelServer]
) -> None:
    broke = [True]

    def paid(request: ModelRequest) -> Reply:
        return HttpError(402) if broke[0] and request.latest == "two" else remember(request)

    server = model_server(paid)
    project = project_at(server.url)
    token = "sk-ant-oat01-lab-0123456789abcdef"
    login = {"accessToken": token, "refreshToken": "sk-ant-ort01-lab-fedcba9876543210"}
    login |= {"expiresAt": round((time.time() + 9e5) * 1000), "scopes": ["user:inference"]}  # type: ignore[dict-item]
    (project.home / ".claude").mkdir()
    (project.home / ".claude" / ".credentials.json").write_text(
        json.dumps({"claudeAiOauth": login}), encoding="utf-8"
    )
    run = project.root / "out"
    project.run("run", "cases", "-e", "claude", "--out", "out", "--json")
    (scratch,) = (run / "scratch").resolve().iterdir()
    kept = [path for path in (*scratch.rglob("*"), *run.rglob("*")) if path.is_file()]
    assert any(path.suffix == ".jsonl" and "projects" in path.parts for path in kept)
    assert not [path for path in kept if token.encode() in path.read_bytes()]
    broke[0] = False
    outcome = project.run("run", "--resume", "out", "--json")
    assert outcome.exit_code == 0, outcome.data
    assert [e["after_turn"] for e in events(run, "trial_continued")] == [1]
