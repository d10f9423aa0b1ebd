"""Where stdout cannot be written, and a run as a person sees it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.project import GUARD_SECONDS, Project
from tests.support.stored import content_of
from tests.support.terminal import on_a_terminal

FULL = Path("/dev/full")  # every write to it finds the disk full

full_disk = pytest.mark.skipif(not FULL.exists(), reason="this system has no /dev/full")

FAILS = {
    "eval.yaml": "name: s\ngates: {max_new_failures: 0}\n",
    "cases/a.yaml": "{input: {prompt: x}, assertions: [{contains: y}], scripted: [{say: y}]}",
    "cases/b.yaml": "{input: {prompt: x}, assertions: [{contains: y}], scripted: [{say: z}]}",
}
# What a run says on stdout is more than a pipe and the stream's buffer take.
MUCH = {f"cases/b{n}.yaml": FAILS["cases/b.yaml"] for n in range(60)}


def exit_code(project: Project, *arguments: str, gone: str = "") -> int:
    """Of `skillup ARGUMENTS`; `gone`: streams whose reader has gone, or that are closed (`2-`)."""
    read, write = os.pipe()
    os.close(read)
    where = {"1": subprocess.DEVNULL, "2": subprocess.DEVNULL}
    where.update({name: write for name in "12" if name in gone and f"{name}-" not in gone})
    closing = " ".join(f"{name}>&-" for name in "12" if f"{name}-" in gone)
    skillup = [sys.executable, "-m", "skillup"] if closing else ["skillup"]
    command = ("sh", "-c", f'exec "$@" {closing}', "sh", *skillup, *arguments)
    env = {"TMPDIR": str(project.root)}
    try:
        return project.shell(*command, env=env, stdout=where["1"], stderr=where["2"]).returncode
    finally:
        os.close(write)


@pytest.mark.slow
@pytest.mark.indexed
def test_a_reader_that_has_gone_changes_no_exit_code(project: Project) -> None:
    """F1: with stdout or stderr gone, or both closed, whatever the verb."""
    project.write(FAILS)
    assert exit_code(project, "run", ".", "--out", "before") == 1
    project.write({"cases/a.yaml": FAILS["cases/b.yaml"]})
    verbs = {
        ("run", ".", "-v"): 1,
        ("judge", "before", "--json"): 1,
        ("trends", "--json"): 0,
        ("schema", "suite"): 0,
        ("run", "nowhere", "--json"): 2,
    }
    for verb, code in verbs.items():
        ways = ("1", "2", "1-2-") if verb[0] == "run" else ("1", "2")
        got = {gone: exit_code(project, *verb, gone=gone) for gone in ways}
        assert got == dict.fromkeys(got, code), verb
    assert not list(project.root.glob("skillup-error-*"))


@pytest.mark.slow
def test_a_reader_that_goes_in_the_middle_changes_no_exit_code(project: Project) -> None:
    """F1: `skillup run --json | head -c 10`, and `judge`, with 60 failing cases."""
    project.write({**FAILS, **MUCH})
    for command in ("skillup run . -q --out r --json", "skillup judge r --json"):
        done = project.shell("sh", "-c", f"{{ {command}; echo $? > code; }} | head -c 10")
        assert len(done.stdout) == 10
        assert (project.root / "code").read_text() == "1\n"
        assert done.stderr.count("BrokenPipe") == 0


def into_full_disk(project: Project, *arguments: str, err: bool = True) -> tuple[int, str]:
    """`skillup ARGUMENTS >/dev/full`: the exit code, and stderr; not `err`: that is full, too."""
    with FULL.open("wb") as full:
        done = subprocess.run(
            [sys.executable, "-m", "skillup", *arguments],
            cwd=project.root,
            env=project.environment({"TMPDIR": str(project.root)}),
            stdout=full,
            stderr=subprocess.PIPE if err else full,
            timeout=GUARD_SECONDS,
            check=False,
        )
    return done.returncode, (done.stderr or b"").decode()


@full_disk
def test_a_stdout_that_cannot_be_written_is_an_error(project: Project) -> None:
    """More and less than a buffer holds, and where nobody can be told."""
    told = (3, "error: cannot write to stdout: No space left on device\n")
    for arguments in (["schema", "suite"], ["--help"]):
        assert into_full_disk(project, *arguments) == told
    assert into_full_disk(project, "schema", "suite", err=False)[0] == 3
    assert not list(project.root.glob("skillup-error-*"))


# A run as a person sees it: on a terminal, in a log file, with -v.

SUITE = {
    "eval.yaml": "name: s\n",
    "cases/a.yaml": """
        input: {turns: [Hello, Bye]}
        assertions: [{contains: bye}]
        scripted:
          - turn: 1
            steps: [{run: "echo $KEY; sleep 1"}]
            say: "hello \\e[2Jthere"
          - {turn: 2, say: bye}
        """,
}
CURSOR = re.compile(r"\x1b\[\d*[A-HJ]")


@pytest.fixture
def suite(project: Project) -> Project:
    return project.write(SUITE)


def test_on_a_terminal_there_is_a_line_for_the_running_trial(suite: Project) -> None:
    with on_a_terminal("run", ".", cwd=suite.root, env=suite.environment()) as terminal:
        terminal.until("turn 1/2")
        terminal.until("shell echo $KEY; sleep 1")
        terminal.until("1 running")
        code = terminal.ends()

    assert code == 0
    assert CURSOR.search(terminal.shown)
    assert "\x1b[2Jthere" not in terminal.shown
    assert terminal.shown.count("\x1b[?25l") == terminal.shown.count("\x1b[?25h")


def test_verbose_tells_the_conversation_and_a_secret_that_a_tool_coloured_is_nowhere(
    suite: Project,
) -> None:
    suite.write(
        {
            "eval.yaml": "name: s\nenvironment: {env: {KEY: '${MY_API_KEY}'}}\n",
            "cases/a.yaml": """
            input: {prompt: Hello}
            assertions: [{contains: bye}]
            scripted:
              - steps: [{run: "echo KEY=$KEY | grep --color=always s3cret | tee found; cat found"}]
                say: bye
            """,
        }
    )

    options = ("-v", "--out", "r", "--report", "html,junit,markdown")
    outcome = suite.run("run", ".", *options, env={"MY_API_KEY": "s3cret-value-of-mine"})

    assert outcome.exit_code == 0
    assert "KEY=***" in outcome.stderr
    assert "a  turn 1  agent calls shell\n    echo KEY=$KEY" in outcome.stderr
    assert "a  turn 1  agent\n    bye\n" in outcome.stderr
    assert ("\x1b" in outcome.stderr, outcome.stdout) == (False, "")
    written = content_of(suite.root / "r")
    assert written.count(b"KEY=***") > 3
    assert b"-value-of-mine" not in written
    assert "-value-of-mine" not in outcome.stderr
