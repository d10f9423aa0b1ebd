"""Six real agents over the Agent Client Protocol, at a scripted model server behind the gateway."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from skillup.app.conformance.model import ConformanceModel
from tests.e2e.conftest import QUESTION, Serve, agent_modules, both_sessions, in_turn
from tests.support.model_server import (
    HttpError,
    ModelRequest,
    ModelServer,
    Reply,
    Script,
    Shell,
    Text,
    ToolCall,
    WriteFile,
)
from tests.support.project import Project

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

AGENTS = yaml.safe_load(Path(__file__).with_name("acp_agents.yaml").read_text())
LESS = ("gemini", "pi")
KEY = "sk-canary-7d1f20c4e8aa4b"
SKILL = "---\nname: greeter\ndescription: Bows.\n---\nBow.\n"
Lab = Callable[..., tuple[Project, ModelServer]]


def profile_of(name: str, url: str, **keys: str) -> str:
    given = dict(AGENTS[name])
    folder = agent_modules(given.pop("package"))
    command = [str(folder / one) if "bin/" in one else one for one in given["command"]]
    own = {"engine": "acp", "command": command, "base_url": url + given["base_url"]}
    return json.dumps({"model": "m1", "api_key_env": "LAB_KEY", **given, **own, **keys})


@pytest.fixture(params=in_turn([name for name in AGENTS if name not in LESS]))
def lab(request: pytest.FixtureRequest, project: Project, model_server: Serve) -> Lab:
    """`lab(script, case, **keys)`: a project with the profile `agent`, and its server."""

    def start(script: Script, case: str, **keys: str) -> tuple[Project, ModelServer]:
        server = model_server(script)
        profile = profile_of(str(request.param), server.url, **keys)
        files = {"engines/agent.yaml": profile, "cases/one.yaml": case}
        files["cases/skills/greeter/SKILL.md"] = SKILL
        files["cases/eval.yaml"] = "name: lab\nskills: [{path: skills/greeter}]\n"
        return project.write(files), server

    return start


ASK = ("AskUserQuestion", "ask_user_question")  # Of Claude and of Qwen; others have none


def work(request: ModelRequest) -> Reply:
    """Runs a command, writes a file, or tells what there is of the conversation."""
    done = request.tool_round
    if "run it" in request.latest:
        return Text("Ran it.") if done else Shell("echo hello > made.txt; cat made.txt")
    if "choose" in request.latest and (tool := next((t for t in ASK if t in request.tools), "")):
        told = Text("Told: " + " ".join(request.tool_results))
        return told if done else ToolCall(tool, {"questions": [QUESTION]})
    if "write it" in request.latest:
        place = re.search(r"/[^\s\"<>\\\\`]*/workspace\b", request.raw_text)
        assert place is not None
        return Text("Wrote it.") if done else WriteFile(f"{place[0]}/notes.txt", "kept\n")
    return Text(f"{len(request.assistant_texts)} answers before")


TURNS = """
    input:
      turns:
        - content: hello
          capture: [{variable: n, pattern: '(\\d+) answers'}]
        - run it please
        - write it
        - what was it?
        - choose
      answers: [{question: Which, answer: blue}]
    assertions:
      - tool_called: {kind: shell, args: {command: {matches: echo}}}
      - file_contains: {path: made.txt, content: hello}
      - file_contains: {path: notes.txt, content: kept}
      - {contains: answers before, turn: 4}
      - contains: {any: [answers before, Blue]}
    """


@both_sessions
def test_a_conversation_with_its_proof_its_calls_its_usage_and_without_the_key(
    lab: Lab, session: str
) -> None:
    project, server = lab(work, TURNS, session=session)

    result = project.run_json("cases", "-e", "agent", env={"LAB_KEY": KEY, "SKILLUP_TRUST": "1"})

    turns = project.record("one/agent/with_skill/1")["turns"]
    assert [case["status"] for case in result["cases"]] == ["PASS"], json.dumps(result["cases"])[
        :3000
    ]
    assert [turn["session_verified"] for turn in turns] == [None, True, True, True, True]
    assert [turn["traffic"]["continued"] for turn in turns] == [True] * 5
    assert [turn["unknown_events"] + turn["unread_lines"] for turn in turns] == [0] * 5
    asked = [i["question"]["answer"] for i in turns[4]["transcript"] if i["question"]]
    assert asked == [["Blue"]] * ("Blue" in turns[4]["response"])
    calls = [i["tool_call"] for t in turns[:4] for i in t["transcript"] if i["tool_call"]]
    kinds = {call["kind"] for call in calls}
    assert {"shell"} < kinds <= {"shell", "write", "edit"}
    ended = [turn["process"]["ended_by"] for turn in turns]
    assert ended == ["kept"] * 5 if session == "live" else "kept" not in ended
    assert all(turn["usage"]["input_tokens"] >= 100 for turn in turns)
    assert any("Bows." in request.raw_text for request in server.requests)
    sent = {r.headers.get("x-api-key") or r.headers["authorization"] for r in server.requests}
    assert sent <= {KEY, f"Bearer {KEY}"}
    files = [path for path in project.root.rglob("*") if path.is_file()]
    assert not [path for path in files if KEY.encode() in path.read_bytes()]


BRANCHES = """
    input:
      turns:
        - content: run it please
          branches: [{name: refuse, turns: [what was it?]}]
        - what was it, then?
    assertions:
      - {contains: answers before, turn: 2}
      - file_contains: {path: made.txt, content: hello}
    """


@pytest.mark.skipif(shutil.which("bwrap") is None, reason="bubblewrap is not installed")
def test_branches_are_forked_in_a_box_where_the_agent_offers_it(lab: Lab) -> None:
    """Claude's agent and opencode do; codex-acp since 2."""
    project, _ = lab(work, BRANCHES)
    project.write({"cases/eval.yaml": "name: lab\nenvironment: {type: bubblewrap}\n"})
    cases = project.run_json("cases", "-e", "agent", env={"LAB_KEY": KEY})["cases"]
    kinds = {(case["error"] or {}).get("kind") for case in cases}
    assert kinds in ({None}, {"unsupported"}), json.dumps(cases)[:3000]


REFUSED = """
    input: {turns: [{content: hello, timeout_seconds: 25}]}
    assertions: [{contains: x}]
    """


def test_a_refusal_of_the_model_is_one_whatever_the_agent_makes_of_it(lab: Lab) -> None:
    """Goose and Copilot answer with it, opencode does not say which; all would ask for long."""
    project, _ = lab(lambda _: HttpError(429, "no"), REFUSED)
    more = ("-e", "agent", "--rate-limit-wait", "0s")
    (case,) = project.run_json("cases", *more, env={"LAB_KEY": KEY})["cases"]
    assert (case["status"], case["error"]["kind"]) == ("ERROR", "rate_limit"), case["error"]


def test_without_permission_nothing_is_written_and_the_call_failed(lab: Lab) -> None:
    case = 'input: {turns: ["run it now"]}\nassertions: [{files_not_exist: [made.txt]}]\n'
    project, _ = lab(work, case, permission="read_only")
    (found,) = project.run_json("cases", "-e", "agent", env={"LAB_KEY": KEY})["cases"]
    (turn,) = project.record("one/agent/with_skill/1")["turns"]
    assert found["status"] == "PASS", json.dumps(turn)[:4000]
    results = [i["tool_result"]["status"] for i in turn["transcript"] if i["tool_result"]]
    assert set(results) <= {"error"}


STEPS = """
    input:
      turns:
        - "My word is zebra.\\nmodel> say: Fine."
        - "Run it.\\nmodel> shell: echo hello > made.txt; cat made.txt\\nmodel> say: Ran it."
        - "What was it?\\nmodel> recall: zebra"
    assertions:
      - {contains: zebra, turn: 3}
      - tool_called: {kind: shell, args: {command: {matches: ^echo hello}}}
      - file_contains: {path: made.txt, content: hello}
    """


@both_sessions
@pytest.mark.parametrize("name", dict.fromkeys(in_turn([n for n in LESS for _ in "12"])))
def test_agents_that_tell_little_of_their_calls_and_one_that_loses_its_session(
    project: Project, name: str, session: str
) -> None:
    with ConformanceModel() as model:
        profile = profile_of(name, model.url, session=session)
        files = {"engines/agent.yaml": profile, "one.yaml": STEPS}
        project.write({**files, "eval.yaml": "name: lab\ncases: {files: [one.yaml]}\n"})
        (case,) = project.run_json("eval.yaml", "-e", "agent", env={"LAB_KEY": KEY})["cases"]
    lost = name == "gemini" and session == "resume"
    kind = (case["error"] or {}).get("kind")
    assert (case["status"], kind) == (("ERROR", "session_lost") if lost else ("PASS", None)), case
