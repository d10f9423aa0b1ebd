"""run_quiet: short helper commands."""

from __future__ import annotations

import sys
from pathlib import Path

import anyio

from skillup.process import CompletedOutput, run_quiet
from tests.support.children import GUARD_SECONDS, Children


def quiet(
    children: Children, body: str, stdin: bytes = b"", timeout_seconds: float = GUARD_SECONDS
) -> CompletedOutput:
    async def call() -> CompletedOutput:
        return await run_quiet(
            [sys.executable, str(children.script(body))],
            cwd=children.directory,
            env=children.env,
            timeout_seconds=timeout_seconds,
            stdin=stdin,
        )

    completed = anyio.run(call)
    children.assert_none_left()
    return completed


def test_output_is_returned_exactly(children: Children) -> None:
    body = "os.write(1, sys.stdin.buffer.read() + b'\\n\\n'); os.write(2, b'\\xff'); sys.exit(3)"
    assert quiet(children, body, b"a\r\nb") == CompletedOutput(
        exit_code=3, stdout="a\r\nb\n\n", stderr="\ufffd", timed_out=False, start_error=None
    )


def test_a_command_that_hangs_times_out_with_what_it_said(children: Children) -> None:
    completed = quiet(children, "say('hello'); time.sleep(300)", timeout_seconds=1.5)
    assert completed.timed_out
    assert (completed.exit_code, completed.stdout) == (None, "hello\n")


def test_a_missing_command_is_told(tmp_path: Path) -> None:
    async def call() -> CompletedOutput:
        return await run_quiet(
            ["no-such-git"], cwd=tmp_path, env={"PATH": "/usr/bin"}, timeout_seconds=None
        )

    completed = anyio.run(call)
    assert completed.exit_code is None
    assert completed.start_error == "no-such-git: no such program on the PATH"
