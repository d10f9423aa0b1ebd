"""`skillup run` with both real CLIs, as a user runs it, against a scripted model server."""

from __future__ import annotations

import os
import signal

import psutil
import pytest

from skillup.history.runs import read_run
from tests.e2e.conftest import ENGINES, KEYS, Lab, agents_of, both_sessions, remembering
from tests.support.model_server import (
    Hang,
    ModelRequest,
    Reply,
    Rule,
    Shell,
    Text,
    WriteFile,
    by_rules,
)
from tests.support.project import wait_until

pytestmark = pytest.mark.e2e

THREE_TURNS = """
    id: {id}
    input:
      turns:
        - content: "one of {id}"
          assertions: [{{contains: "{id}"}}]
        - content: "write for {id}"
          capture: [{{variable: n, pattern: '(\\d+) files'}}]
          assertions: [{{tool_called: {{kind: write}}}}, {{files_exist: [out.txt]}}]
        - content: "three <<n>> of {id}"
          assertions: [{{contains: {{all: ["one of {id}", "write for {id}"]}}}}]
    """
TWO_TURNS = "input: {turns: [one, two]}\nassertions: [{tool_not_called: {kind: shell}}]\n"


remember = remembering(Rule(r"^write", [WriteFile("out.txt", "hello"), Text("Wrote 3 files.")]))


@pytest.mark.slow
def test_conversations_at_once_do_not_mix_and_tokens_and_tool_calls_of_a_turn_are_its_own(
    lab: Lab,
) -> None:
    names = ["ant", "bee"]
    cases = {f"cases/{name}.yaml": THREE_TURNS.format(id=name) for name in names}
    project, server = lab(remember, cases)
    result = project.run_json("cases", "-e", "claude", "-e", "codex", "-j", "8", env=KEYS)
    assert {case["status"] for case in result["cases"]} == {"PASS"}, result["cases"]
    assert len(result["cases"]) == 4
    last = [r for r in server.requests if r.latest.startswith("three")]
    assert len(last) == 4
    for request in last:
        own = next(name for name in names if request.latest.endswith(name))
        assert request.user_texts == [f"one of {own}", f"write for {own}", f"three 3 of {own}"]
    sessions = {case["session_id"] for case in result["cases"]}
    assert len(sessions) == 4
    assert all(t["session_verified"] for c in result["cases"] for t in c["turns"][1:])
    for case in result["cases"]:
        assert [turn["usage"]["output_tokens"] for turn in case["turns"]] == [10, 20, 10]
        record = project.record(f"{case['case_id']}/{case['engine']}/with_skill/1")
        calls = [
            [i["tool_call"]["kind"] for i in turn["transcript"] if i["tool_call"]]
            for turn in record["turns"]
        ]
        assert calls == [[], ["write"], []], case["engine"]
    about = read_run(project.latest_run()).about  # what nights are compared by
    asked = {
        engine: {r.model for r in server.requests if r.model[:3] == m}
        for engine, m in (("claude", "cla"), ("codex", "gpt"))
    }
    assert {e: {m.partition("[")[0]} for e, m in about.models.items()} == asked
    assert about.cli_versions.keys() == {"claude", "codex"}


@both_sessions
@pytest.mark.parametrize("engine", [pytest.param("claude", marks=pytest.mark.slow), "codex"])
def test_an_interrupt_ends_the_agent_keeps_what_finished_and_resume_does_the_rest(
    lab: Lab, engine: str, session: str
) -> None:
    hanging = True

    def script(request: ModelRequest) -> Reply:
        return Hang() if hanging and request.latest == "slow again" else Text("fine")

    fast = "input: {turns: [quick, quick again]}\nassertions: [{contains: fine}]\n"
    cases = {"cases/a.yaml": fast, "cases/b.yaml": fast.replace("quick", "slow")}
    project, server = lab(script, cases, f"session: {session}\n")
    with project.start(
        "run", "cases", "-e", engine, "-j", "1", "--out", "here", env=KEYS
    ) as running:
        server.wait_for_requests(4)
        running.send_signal(signal.SIGINT)
        _, stderr = running.communicate(timeout=60)
    assert running.returncode == 130, stderr
    assert "--resume" in stderr
    assert not agents_of(project)
    hanging = False
    resumed = project.run("run", "--resume", "here", "--json", env=KEYS)
    assert resumed.exit_code == 0, resumed.stderr
    assert [case["status"] for case in resumed.data["cases"]] == ["PASS", "PASS"]
    asked = [request.latest for request in server.requests]
    assert asked == ["quick", "quick again", "slow", "slow again", "slow again"]
    assert server.requests[-1].user_texts == ["slow", "slow again"]


@pytest.mark.slow
@both_sessions
@pytest.mark.parametrize("engine", ENGINES)
def test_a_killed_skillup_leaves_agents_that_its_next_start_ends(
    lab: Lab, engine: str, session: str
) -> None:
    script = by_rules(Rule("one", [Shell("sleep 600 & sleep 600")]), Rule("two", [Text("ok")]))
    project, _ = lab(script, {"cases/two.yaml": TWO_TURNS}, f"session: {session}\n")
    with project.start("run", "cases", "-e", engine, env=KEYS) as running:
        wait_until(lambda: any(_name(p) == "sleep" for p in agents_of(project)))
        os.kill(running.pid, signal.SIGKILL)
        running.communicate(timeout=60)
    # The app-server ends its commands when nobody writes to it any more.
    assert agents_of(project) or (engine, session) == ("codex", "live")
    ok = "input: {prompt: two}\nassertions: [{contains: ok}]\n"
    project.write({"cases/two.yaml": ok})
    assert project.run("run", "cases", "-e", engine, env=KEYS).exit_code == 0
    assert not agents_of(project)


def _name(process: psutil.Process) -> str:
    try:
        return process.name()
    except psutil.Error:  # it has ended since it was listed
        return ""
