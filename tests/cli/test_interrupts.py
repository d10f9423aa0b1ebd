"""Ctrl-C at every moment of the process, and what a run that is stopped leaves."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from tests.support.project import GUARD_SECONDS, Project
from tests.support.terminal import on_a_terminal

# What is imported at the moment says where in its start-up the command is.
AT_IMPORT = """
import os, signal, sys
from importlib.abc import MetaPathFinder

WHEN = sys.argv[1]

class CtrlC(MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name == WHEN:
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, CtrlC())
from skillup.__main__ import main
sys.argv = ["skillup", "list", "."]
main()
"""

IN_A_VERB = """
import signal, sys, time
from skillup.cli.entry import run_app
from skillup.cli.main import VERBS
from skillup.cli.options import argument

def ctrl_c(*_):
    signal.raise_signal(signal.SIGINT)

class Named:
    def __set_name__(self, owner, name): ctrl_c()

def renamed(): type("Owner", (), {"it": Named()})
def grouped():
    try: ctrl_c()
    except KeyboardInterrupt as error: raise BaseExceptionGroup("several", [error])
def converted():
    try: ctrl_c()
    except KeyboardInterrupt: raise ValueError("odd")

def odd(what: "str" = argument(..., "WHAT", "")):
    globals()[what]()
    time.sleep(60)

VERBS["odd"] = "odd.odd"
sys.modules["skillup.cli.commands.odd"] = sys.modules["__main__"]

sys.exit(run_app(["odd", sys.argv[1]]))
"""
WAYS = ("ctrl_c", "renamed", "grouped", "converted")


def ended(program: str, argument: str, cwd: Path) -> tuple[int, str, str]:
    done = subprocess.run(
        [sys.executable, "-c", program, argument],
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=GUARD_SECONDS,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize("where", ["skillup.cli.entry", "click", "pydantic", *WAYS])
def test_while_libraries_are_imported_or_where_one_makes_another_error_of_it(
    where: str, tmp_path: Path
) -> None:
    program = IN_A_VERB if where in WAYS else AT_IMPORT
    assert ended(program, where, tmp_path) == (130, "", "interrupted\n")


def test_before_the_first_trial_of_a_run_nothing_is_reported_of_it(project: Project) -> None:
    """Reports import libraries that need what the interrupt left half imported."""
    case = "{input: {prompt: x}, assertions: [{contains: y}], scripted: [{say: y}]}"
    project.write({"eval.yaml": "name: demo", "cases/a.yaml": case})
    run = AT_IMPORT.replace('"list", "."', '"run", ".", "--out", "out", "--report", "html"')
    code, _, said = ended(run, "anyio._backends._asyncio", project.root)
    assert (code, said.partition("\n")[2]) == (130, "interrupted\n")  # behind what runs
    assert project.run("run", "--resume", "out").exit_code == 0


# A run that is stopped from outside: what has finished is kept, and nobody goes on working.

CASE = """
    input: {prompt: go}
    assertions: [{contains: ok}]
    scripted:
      - steps: [{run: 'echo $$ > "PIDS/$$"; sleep 300'}]
        say: ok
    """


def started(pids: Path, several: int = 1) -> list[int]:
    """The agents, once there are so many."""
    deadline = time.monotonic() + GUARD_SECONDS
    while len(found := [int(f.name) for f in pids.iterdir() if f.name.isdigit()]) < several:
        assert time.monotonic() < deadline
        time.sleep(0.02)
    return found


@pytest.mark.slow
@pytest.mark.parametrize(
    "signals", [[signal.SIGTERM], [signal.SIGHUP], [signal.SIGINT, signal.SIGINT, signal.SIGINT]]
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
        agents = started(pids, 2)
        for number in signals:
            process.send_signal(number)
            time.sleep(0.05)
        stderr = process.communicate(timeout=GUARD_SECONDS)[1]
    assert process.returncode == 130, stderr
    assert "--resume" in stderr
    assert json.loads((out / "result.json").read_text())["not_run"]
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
        (agent,) = started(pids)
        terminal.type("\x03")
        terminal.until("stopping: ending 1 agent; Ctrl-C again to leave at once")
        terminal.type("\x03")
        code = terminal.ends()
    assert code == 130, terminal.shown
    assert f"skillup run --resume {out}" in terminal.shown.replace("\r\n", "")
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
            started(tmp_path)
            process.send_signal(signal.SIGHUP)
            stderr = process.communicate(timeout=GUARD_SECONDS)[1]
    finally:
        signal.signal(signal.SIGHUP, before)
    assert process.returncode == 0, stderr
