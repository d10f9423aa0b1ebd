"""Processes that cannot be started: a sentence in the outcome, never an exception."""

from __future__ import annotations

import os
from pathlib import Path

import anyio
import pytest

from skillup.process.run import ProcessRequest, run_process


@pytest.mark.parametrize(
    ("argv", "extra", "message"),
    [
        (("no-such-agent",), {}, "no-such-agent: no such program on the PATH"),
        (("./no-such-agent",), {}, "./no-such-agent: No such file or directory"),
        # The PATH that counts is the request's own.
        (("true",), {"PATH": "/nowhere"}, "true: no such program on the PATH"),
        (("./plain",), {}, "./plain: Permission denied"),
        (
            ("./headless",),
            {},
            "./headless: the interpreter that its first line names does not exist",
        ),
        (("./words",), {}, "./words: Exec format error"),
        (("true", *["x" * 100_000] * 100), {}, "true: Argument list too long"),
        (("true", "a\0b"), {}, "cannot be passed on"),
        (("true",), {"A": "a\0b"}, "cannot be passed on"),
    ],
    ids=range(9),
)
def test_why_a_program_did_not_start(
    tmp_path: Path, argv: tuple[str, ...], extra: dict[str, str], message: str
) -> None:
    for name, content, mode in (
        ("plain", "#!/bin/sh\n", 0o644),
        ("headless", "#!/no/such/interpreter\n", 0o755),
        ("words", "echo hello\n", 0o755),
    ):
        (tmp_path / name).write_text(content, encoding="utf-8")
        (tmp_path / name).chmod(mode)
    request = ProcessRequest(argv, tmp_path, {"PATH": os.defpath, **extra})
    outcome = anyio.run(run_process, request)
    assert (outcome.ended_by, outcome.exit_code, outcome.signal) == ("not_started", None, None)
    assert outcome.start_error is not None
    assert outcome.start_error.endswith(message) or message in outcome.start_error


def test_a_missing_working_directory(tmp_path: Path) -> None:
    place = tmp_path / "missing"
    for what in ("does not exist", "is not a directory"):
        outcome = anyio.run(run_process, ProcessRequest(("true",), place, {"PATH": os.defpath}))
        assert outcome.start_error == f"the working directory {place} {what}"
        place.touch()
