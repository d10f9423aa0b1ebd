"""A run that is stopped from outside: what has finished is kept, and nobody goes on working."""

from __future__ import annotations

import json
import signal
import time
from pathlib import Path

import psutil
import pytest

from tests.support.project import GUARD_SECONDS, Project
from tests.support.terminal import on_a_terminal

CASE = """
    input: {prompt: go}
    assertions: [{contains: ok}]
    scripted:
      - steps: [{run: 'echo $$ > "PIDS/$$"; sleep 300'}]
        say: ok
    """


@pytest.mark.slow
@pytest.mark.parametrize(
    "signals",
    [
        [signal.SIGTERM],
        [signal.SIGHUP],
        [signal.SIGINT, signal.SIGINT, signal.SIGINT],
    ],
)
def test_it_ends_its_agents_and_exits_with_130(
    project: Project, tmp_path: Path, signals: list[signal.Signals]
) -> None:
    pids = tmp_path / "pids"
    pids.mkdir()
    case = CASE.replace("PIDS", str(pids))
    project.write({"eval.yaml": "name: x\n", "cases/a.yaml": case, "cases/b.yaml": case})
    out = tmp_path / "out"
    with project.start("run", ".", "-j", "2", "--out", str(out)) as process:
        deadline = time.monotonic() + GUARD_SECONDS
        while len(list(pids.iterdir())) < 2 and time.monotonic() < deadline:
            time.sleep(0.02)
        for number in signals:
            process.send_signal(number)
            time.sleep(0.05)
        stderr = process.communicate(timeout=GUARD_SECONDS)[1]
    assert process.returncode == 130, stderr
    assert "--resume" in stderr
    assert json.loads((out / "result.json").read_text())["not_run"]
    agents = [int(file.name) for file in pids.iterdir()]
    assert len(agents) == 2
    assert not [pid for pid in agents if psutil.pid_exists(pid)]


STUBBORN = """
    input: {prompt: go}
    assertions: [{contains: ok}]
    scripted:
      - steps: [{run: "trap '' INT TERM; echo $$ > PIDS/$$; while :; do sleep 1; done"}]
        say: ok
        misbehave: {ignore_signals: true}
    """


def test_a_second_ctrl_c_leaves_at_once_and_loses_nothing(project: Project, tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    pids.mkdir()
    case = STUBBORN.replace("PIDS", str(pids))
    done = "input: {prompt: x}\nassertions: [{contains: y}]\nscripted: [{say: y}]\n"
    project.write({"eval.yaml": "name: x\n", "cases/a.yaml": done, "cases/b.yaml": case})
    out = tmp_path / "out"
    run = ("run", ".", "-j", "1", "--out", str(out))
    with on_a_terminal(*run, cwd=project.root, env=project.environment()) as terminal:
        terminal.until("trap")
        deadline = time.monotonic() + GUARD_SECONDS
        while not list(pids.iterdir()) and time.monotonic() < deadline:
            time.sleep(0.02)
        terminal.type("\x03")
        terminal.until("stopping: ending 1 agent; Ctrl-C again to leave at once")
        terminal.type("\x03")
        code = terminal.ends()
    assert code == 130, terminal.shown
    assert f"skillup run --resume {out}" in terminal.shown.replace("\r\n", "")
    (agent,) = (int(file.name) for file in pids.iterdir())
    assert not psutil.pid_exists(agent)
    project.write({"cases/b.yaml": done})
    resumed = project.run("run", "--resume", str(out), "--json")
    assert resumed.exit_code == 0, resumed.stderr
    assert resumed.data["summary"]["pass"] == 2


def test_under_nohup_a_closed_terminal_does_not_stop_it(project: Project, tmp_path: Path) -> None:
    case = CASE.replace("sleep 300", "sleep 1").replace("PIDS", str(tmp_path))
    project.write({"eval.yaml": "name: x\n", "cases/a.yaml": case})
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)  # inherited by the run
    try:
        with project.start("run", ".") as process:
            deadline = time.monotonic() + GUARD_SECONDS
            while not [f for f in tmp_path.iterdir() if f.name.isdigit()]:
                assert time.monotonic() < deadline
                time.sleep(0.02)
            process.send_signal(signal.SIGHUP)
            stderr = process.communicate(timeout=GUARD_SECONDS)[1]
    finally:
        signal.signal(signal.SIGHUP, before)
    assert process.returncode == 0, stderr
