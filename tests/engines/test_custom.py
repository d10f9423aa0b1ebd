"""Custom engines of skill-up's suites: a program and an HTTP service, in real conversations."""

from __future__ import annotations

import json
import shutil
import sys
import threading
from collections.abc import Iterator
from email.message import Message
from pathlib import Path
from typing import Any

import pytest

from tests.support.answering import answering
from tests.support.project import Project

CORPUS = Path(__file__).resolve().parents[3] / "shared" / "compat" / "skill-up"
AGENT = """
    import json, pathlib, sys, time
    given = json.loads(pathlib.Path(sys.argv[1]).read_bytes())
    said = given["messages"][-1]["content"]
    count = int(given.get("session_id", "s0")[1:]) + 1
    if said == "crash":
        sys.exit("it broke: " + KEY)
    if said == "hang":
        time.sleep(300)
    if said == "garbage":
        print("{no json")
        sys.exit()
    shell = {"id": "1", "name": "bash", "arguments": {"command": "ls"}}
    result = {
        "exit_code": 3 if said == "fail" else 0,
        "stderr": "it says no",
        "session_id": "" if said == "forget" else f"s{count}",
        "final_message": f"{count}: {said} {given.get('kwargs')} {KEY}",
        "input_tokens": 10 * count,
        "output_tokens": 1,
        "transcript": [
            {"role": "user", "content": said},
            {"role": "tool_call", "tool_call": shell},
            {"role": "tool_result", "tool_result": {"call_id": "1", "status": "success"}},
        ],
    }
"""
PROGRAM = f"""
    import os
    KEY = os.environ["AGENT_KEY"]{AGENT}
    pathlib.Path(sys.argv[2]).write_text(json.dumps(result, indent=1))
    print("noise")
"""
KEY = "a-secret-of-mine-4711"
LOCAL = f"""
    transport: local
    conversation_mode: stateful
    kwargs: {{a: "${{case_id}}"}}
    env: {{AGENT_KEY: "${{MY_TOKEN?set it}}"}}
    local:
      command: {sys.executable}
      args: [../agent.py, "${{input_file}}", "${{output_file}}"]
      cwd: ${{workspace}}
      input_file: .own/in.json
      output_file: .own/out.json
"""
HTTP = """
    transport: http
    conversation_mode: stateful
    kwargs: {a: "${case_id}"}
    http:
      url: ${AGENT_URL}/v1/run
      headers: {Authorization: "Bearer ${MY_TOKEN}"}
"""


def answer(headers: Message, body: bytes) -> tuple[int, bytes, dict[str, str]]:
    """Of the agent's other form; `fail-CODE` is answered with that status."""
    given = json.loads(body)
    said, before = given["messages"][-1]["content"], given.get("session_id", "s0")
    count = int(before[1:]) + 1
    if said == "hang":
        threading.Event().wait(20)
    status = int(said.removeprefix("fail-")) if said.startswith("fail-") else 200
    told: Any = {"exit_code": 0, "session_id": f"s{count}", "input_tokens": 10 * count}
    auth, kwargs = headers["Authorization"], given.get("kwargs")
    told |= {"final_message": f"{count}: {said} {kwargs} {auth}", "output_tokens": 1}
    return status, b"no json" if said == "garbage" else json.dumps(told).encode(), {}


@pytest.fixture(scope="module")
def service() -> Iterator[str]:
    with answering(answer) as url:
        yield url


def project(tmp_path: Path, custom: str, *cases: list[str], more: str = "") -> Project:
    made = Project(tmp_path)
    program = str(made.root / "agent.py")
    suite = f"schema_version: v1alpha1\nengine:\n  name: mine\n  custom:\n{custom}\n{more}"
    made.write({"agent.py": PROGRAM, "eval.yaml": suite.replace("../agent.py", program)})
    for turns in cases:
        said = [{"role": "user", "content": turn} for turn in turns]
        talk = {"turns": said, "system": "Be terse."}
        case = {"input": talk, "constraints": {"timeout_seconds": 4}}
        made.write({f"cases/{turns[-1]}.yaml": json.dumps(case)})
    return made


@pytest.mark.parametrize("custom", [LOCAL, HTTP], ids=["local", "http"])
def test_three_turns_hand_the_session_on_and_say_what_is_proven(
    custom: str, tmp_path: Path, service: str
) -> None:
    held = project(tmp_path, custom, ["one", "two", "three"])
    done = held.run("run", ".", "--keep-traffic", env={"MY_TOKEN": KEY, "AGENT_URL": service})
    assert done.exit_code == 0, done.stdout + done.stderr
    record = held.record("three/mine/with_skill/1")
    turns = record["turns"]
    for number, (turn, said) in enumerate(zip(turns, ["one", "two", "three"], strict=True), 1):
        assert turn["response"].startswith(f"{number}: {said} {{'a': 'three'}}")
        assert turn["session_id"] == f"s{number}"  # It changes with each answer
        assert turn["usage"]["input_tokens"] == 10 * number
        assert turn["changes"] in (None, {"files": []}) or not any(turn["changes"].values())
    assert [turn["session_verified"] for turn in turns] == [None, False, False]
    assert ["nothing shows" in " ".join(turn["notes"]) for turn in turns] == [False, True, True]
    calls = [item["tool_call"]["kind"] for item in turns[1]["transcript"] if item.get("tool_call")]
    assert calls == (["shell"] if custom is LOCAL else [])
    everything = b"".join(p.read_bytes() for p in held.latest_run().rglob("*") if p.is_file())
    assert KEY.encode() not in everything
    assert KEY not in json.dumps(record)


ERRORS = [
    (LOCAL, ["crash"], "crash"),
    (LOCAL, ["fail"], "model_error"),
    (LOCAL, ["garbage"], "protocol"),
    (LOCAL, ["hang"], "timeout"),
    (LOCAL, ["forget", "next"], "protocol"),
    (HTTP, ["fail-401"], "auth"),
    (HTTP, ["fail-500"], "model_error"),
    (HTTP, ["garbage"], "protocol"),
    (HTTP, ["hang"], "timeout"),
]


@pytest.mark.parametrize("custom", [LOCAL, HTTP], ids=["local", "http"])
def test_what_goes_wrong_is_an_error_of_its_kind(custom: str, tmp_path: Path, service: str) -> None:
    own = [(turns, kind) for form, turns, kind in ERRORS if form is custom]
    held = project(tmp_path, custom, *(turns for turns, _ in own))
    mine = custom.replace("../agent.py", str(held.root / "agent.py"))
    held.write({"engines/mine.yaml": f"engine: command\ncustom:{mine}"})
    held.write({"engines/other.yaml": "engine: codex\ncommand: [false]\n"})  # has a gateway
    more = ("-j", "5", "-e", "mine", "-e", "other")
    held.run("run", ".", *more, env={"MY_TOKEN": KEY, "AGENT_URL": service})
    found = {
        turns[-1]: held.record(f"{turns[-1]}/mine/with_skill/1")["turns"][-1] for turns, _ in own
    }
    kinds = {name: (turn["error"] or {}).get("kind") for name, turn in found.items()}
    assert kinds == {turns[-1]: kind for turns, kind in own}
    if custom is HTTP:
        held.run("run", ".", env={"MY_TOKEN": KEY, "AGENT_URL": "http://127.0.0.1:9"})
        lost = held.record("hang/mine/with_skill/1")["turns"][-1]["error"]
        assert lost["kind"] == "network"
    else:
        assert "exit_code" in found["garbage"]["error"]["message"]
        assert "it broke" in json.dumps(found["crash"]["error"])
        assert "it says no" in found["fail"]["error"]["message"]
        assert "the message was not sent" in found["next"]["error"]["message"]


@pytest.mark.parametrize("allowed", [False, True])
def test_an_engine_without_sessions_holds_one_turn(allowed: bool, tmp_path: Path) -> None:
    more = "on_no_resume: single_shot" if allowed else ""
    custom = LOCAL.replace("conversation_mode: stateful", "conversation_mode: batch")
    held = project(tmp_path, custom, ["one"], ["one", "two"], more=more)
    held.run("run", ".", env={"MY_TOKEN": KEY})
    assert held.record("one/mine/with_skill/1")["turns"][0]["status"] == "completed"
    record = held.record("two/mine/with_skill/1")
    assert record["execution_mode"] == ("single_shot" if allowed else "multi_turn")
    assert (record["error"] or {}).get("kind") == (None if allowed else "no_resume")


@pytest.mark.parametrize(
    ("url", "refused"),
    [
        ("${AGENT_URL}/v1/run", False),
        ("${AGENT_URL:-https://there.test}/v1/run", False),
        ("https://there.test/v1/run", True),
        ("${AGENT_URL}@there.test/v1/run", True),
        ("${NOT_SET:-https://there.test}/v1/run", True),
    ],
)
def test_an_address_that_a_suite_names_gets_no_variables(
    url: str, refused: bool, tmp_path: Path, service: str
) -> None:
    held = project(tmp_path, HTTP.replace("${AGENT_URL}/v1/run", url), ["one"])
    done = held.run("run", ".", env={"MY_TOKEN": KEY, "AGENT_URL": service})
    assert ("--trust" in done.stderr and done.exit_code == 2) is refused, done.stderr
    assert KEY not in done.stdout + done.stderr


def test_a_variable_that_is_not_set_is_named_with_its_line(tmp_path: Path) -> None:
    held = project(tmp_path, LOCAL, ["one"])
    done = held.run("run", ".")
    assert (done.exit_code, "eval.yaml:9" in done.stderr) == (2, True), done.stderr
    assert "set it" in done.stderr
    assert "warning" in held.run("validate", ".").stderr


@pytest.mark.skipif(not CORPUS.is_dir(), reason=f"the corpus is not here: {CORPUS}")
def test_the_suites_of_skill_up_load_and_run(tmp_path: Path, service: str) -> None:
    held = Project(tmp_path)
    shutil.copytree(CORPUS / "e2e/testdata/custom-engine", held.root, dirs_exist_ok=True)
    shutil.copytree(CORPUS / "examples/deepseek-harness", held.root / "dsh")
    agent = """
        #!/bin/sh
        if grep -q '"session_id":"session-1"' "$1"; then
            echo '{"exit_code": 0, "final_message": "used token abc"}'
        else
            echo '{"exit_code": 0, "session_id": "session-1", "final_message": "token=abc"}'
        fi
    """
    held.write({"agent.sh": agent})
    (held.root / "agent.sh").chmod(0o755)
    env = {
        "CUSTOM_STATEFUL_AGENT_BIN": str(held.root / "agent.sh"),
        "CUSTOM_AGENT_ENDPOINT": service,
        "DASHSCOPE_EVAL_API_KEY": KEY,
        "DSH_SKILL_UP_RUNNER": "runner.py",
    }
    done = held.run("run", "evals/eval-stateful-local.yaml", env=env)
    assert done.exit_code == 0, done.stdout + done.stderr
    for suite in ("evals/eval-stateful-http.yaml", "dsh/evals/eval.yaml"):
        checked = held.run("validate", suite, env=env)
        assert checked.exit_code == 0, checked.stdout + checked.stderr
        assert "engine" not in checked.stdout + checked.stderr
