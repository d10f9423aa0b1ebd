"""Ctrl-C at every moment of the process: one line, exit code 130."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.project import GUARD_SECONDS, Project

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
from skillup.cli.entry import leave_when_interrupted, run_app
from skillup.cli.main import VERBS

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

def odd(what: str):
    globals()[what]()
    time.sleep(60)

VERBS["odd"] = "odd.odd"
sys.modules["skillup.cli.commands.odd"] = sys.modules["__main__"]

leave_when_interrupted()
sys.exit(run_app(["odd", sys.argv[1]]))
"""


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


@pytest.mark.parametrize("module", ["skillup.cli.entry", "typer", "pydantic"])
def test_while_libraries_are_imported(module: str, tmp_path: Path) -> None:
    assert ended(AT_IMPORT, module, tmp_path) == (130, "", "interrupted\n")


def test_before_the_first_trial_of_a_run_nothing_is_reported_of_it(project: Project) -> None:
    """Reports import libraries that need what the interrupt left half imported."""
    case = "{input: {prompt: x}, assertions: [{contains: y}], scripted: [{say: y}]}"
    project.write({"eval.yaml": "name: demo", "cases/a.yaml": case})
    run = AT_IMPORT.replace('"list", "."', '"run", ".", "--out", "out", "--report", "html"')
    code, _, said = ended(run, "asyncio.events", project.root)
    go_on = f"  hint: go on with: skillup run --resume {project.root / 'out'}\n"
    assert (code, said) == (130, f"error: interrupted before the first trial\n{go_on}")

    assert project.run("run", "--resume", "out").exit_code == 0


@pytest.mark.parametrize("where", ["ctrl_c", "renamed", "grouped", "converted"])
def test_where_python_or_a_library_makes_another_error_of_it(where: str, tmp_path: Path) -> None:
    assert ended(IN_A_VERB, where, tmp_path) == (130, "", "interrupted\n")


def test_it_stays_ignored_where_whoever_started_it_had_it_ignored(tmp_path: Path) -> None:
    program = "import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\n" + AT_IMPORT
    code, _, said = ended(program, "typer", tmp_path)

    assert (code, "interrupted" in said) == (2, False)


def test_a_program_that_runs_the_command_within_itself_keeps_its_own_handling() -> None:
    from skillup.cli.entry import run_app

    before = signal.getsignal(signal.SIGINT)
    assert run_app(["--help"]) == 0
    assert signal.getsignal(signal.SIGINT) == before
