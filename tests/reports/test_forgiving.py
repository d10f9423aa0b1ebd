"""A run goes on where nobody listens to it any more."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from pathlib import Path

import pytest

from skillup.reports.forgiving import Forgiving
from skillup.reports.stream_console import make_console
from tests.support.project import GUARD_SECONDS, Project

CASE = """
    input: {turns: [one, two]}
    assertions: [{contains: one}]
    scripted: [{steps: [{run: "sleep 0.2"}], say: one}]
    """


class Gone(io.StringIO):
    """A pipe whose reader has gone."""

    def write(self, text: str) -> int:
        raise BrokenPipeError

    def flush(self) -> None:
        raise BrokenPipeError


def test_what_cannot_be_written_is_dropped() -> None:
    stream = Forgiving(Gone())
    assert stream.write("abc") == 3
    stream.flush()
    closed = io.StringIO()
    closed.close()
    assert Forgiving(closed).write("abc") == 3


def test_the_rest_is_the_streams_own() -> None:
    inner = io.StringIO()
    stream = Forgiving(inner)
    assert stream.write("abc") == 3
    assert inner.getvalue() == "abc"
    assert stream.isatty() is False


def test_only_stderr_may_be_gone() -> None:
    with pytest.raises((BrokenPipeError, SystemExit)):
        make_console(Gone()).print("what somebody asked for")


@pytest.mark.parametrize("options", [[], ["-v"]])
def test_a_run_whose_reader_has_gone_is_held_to_its_end(
    project: Project, options: list[str]
) -> None:
    project.write({"eval.yaml": "name: s\n", "cases/a.yaml": CASE, "cases/b.yaml": CASE})
    command = [sys.executable, "-m", "skillup", "run", ".", "--out", "r", *options]
    process = subprocess.Popen(
        command, cwd=project.root, env=project.environment(), stderr=subprocess.PIPE
    )
    assert process.stderr is not None
    process.stderr.close()

    assert process.wait(GUARD_SECONDS) == 0
    assert passed_in(project.root / "r") == 2


def test_a_run_that_was_started_without_a_terminals_streams_is_held(project: Project) -> None:
    project.write({"eval.yaml": "name: s\n", "cases/a.yaml": CASE})
    command = ["sh", "-c", f"'{sys.executable}' -m skillup run . -v --out r 2>&- >&-"]
    process = subprocess.run(
        command, cwd=project.root, env=project.environment(), timeout=GUARD_SECONDS, check=False
    )

    assert process.returncode == 0
    assert passed_in(project.root / "r") == 1


def passed_in(run: Path) -> int:
    """How many trials passed, by its result."""
    return int(json.loads((run / "result.json").read_text("utf-8"))["summary"]["pass"])
