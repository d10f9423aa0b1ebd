"""Processes that cannot be started: a sentence in the outcome, never an exception."""

from __future__ import annotations

import os
from pathlib import Path

import anyio
import pytest

from skillup.process import ProcessOutcome, ProcessRequest, run_process


def outcome_of(
    *argv: str, cwd: Path, path: str = os.defpath, extra: dict[str, str] | None = None
) -> ProcessOutcome:
    env = {"PATH": path, **(extra or {})}
    outcome = anyio.run(run_process, ProcessRequest(argv, cwd, env))
    assert outcome.ended_by == "not_started"
    assert (outcome.exit_code, outcome.signal) == (None, None)
    return outcome


def test_a_missing_program(tmp_path: Path) -> None:
    outcome = outcome_of("no-such-agent", cwd=tmp_path)
    assert outcome.start_error == "no-such-agent: no such program on the PATH"
    outcome = outcome_of("./no-such-agent", cwd=tmp_path)
    assert outcome.start_error == "./no-such-agent: no such file"


def test_the_path_that_counts_is_the_requests_own(tmp_path: Path) -> None:
    outcome = outcome_of("true", cwd=tmp_path, path=str(tmp_path))
    assert outcome.start_error == "true: no such program on the PATH"


def test_a_file_that_is_not_executable(tmp_path: Path) -> None:
    (tmp_path / "agent").write_text("#!/bin/sh\n", encoding="utf-8")
    outcome = outcome_of("./agent", cwd=tmp_path)
    assert outcome.start_error == "./agent: the file is not executable"
    outcome = outcome_of("agent", cwd=tmp_path, path=str(tmp_path))
    assert outcome.start_error == "agent: the file is not executable"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("#!/no/such/interpreter\n", "the interpreter that its first line names does not exist"),
        ("echo hello\n", "neither a program for this system nor a script with a #! line"),
    ],
)
def test_a_script_that_nothing_can_run(tmp_path: Path, content: str, message: str) -> None:
    (tmp_path / "agent").write_text(content, encoding="utf-8")
    (tmp_path / "agent").chmod(0o755)
    assert outcome_of("./agent", cwd=tmp_path).start_error == f"./agent: {message}"


def test_a_missing_working_directory(tmp_path: Path) -> None:
    missing = tmp_path / "missing"
    outcome = outcome_of("true", cwd=missing)
    assert outcome.start_error == f"the working directory {missing} does not exist"
    missing.touch()
    outcome = outcome_of("true", cwd=missing)
    assert outcome.start_error == f"the working directory {missing} is not a directory"


def test_arguments_that_are_too_long(tmp_path: Path) -> None:
    outcome = outcome_of("true", *["x" * 100_000] * 100, cwd=tmp_path)
    assert outcome.start_error is not None
    assert "longer than the system allows" in outcome.start_error


def test_values_that_cannot_be_passed_on(tmp_path: Path) -> None:
    for outcome in (
        outcome_of("true", "a\0b", cwd=tmp_path),
        outcome_of("true", cwd=tmp_path, extra={"A": "a\0b"}),
    ):
        assert outcome.start_error is not None
        assert "cannot be passed on" in outcome.start_error
