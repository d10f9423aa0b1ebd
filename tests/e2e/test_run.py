"""`skillup run` with both real CLIs, as a user runs it, against a scripted model server."""

from __future__ import annotations

import os
import signal

import psutil
import pytest

from tests.e2e.conftest import ENGINES, KEYS, Lab, agents_of, both_sessions
from tests.support.model_server import Hang, ModelRequest, Reply, Rule, Shell, Text, by_rules
from tests.support.project import wait_until

pytestmark = pytest.mark.e2e

TWO_TURNS = "input: {turns: [one, two]}\nassertions: [{tool_not_called: {kind: shell}}]\n"


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
