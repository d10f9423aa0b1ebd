"""Short helper commands (git, ``claude --version``) whose whole output fits in memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from skillup.process.request import CompletedOutput, ProcessRequest
from skillup.process.streams import OutputStream
from skillup.process.supervise import supervise

_MAX_OUTPUT_BYTES = 64 << 20


async def run_quiet(
    argv: Sequence[str],
    *,
    cwd: Path,
    env: Mapping[str, str],
    timeout_seconds: float | None,
    stdin: bytes = b"",
) -> CompletedOutput:
    """Runs a command to its end, with the same care as an agent.

    ``env`` is the whole environment. A command that floods (over 64 MiB in one stream) is ended and
    has ``exit_code`` None, like one that was killed.
    """
    request = ProcessRequest(
        argv=tuple(argv),
        cwd=cwd,
        env=env,
        stdin=stdin,
        timeout_seconds=timeout_seconds,
        max_output_bytes=_MAX_OUTPUT_BYTES,
    )
    stdout, stderr = bytearray(), bytearray()
    outcome = await supervise(request, _kept_in(stdout), _kept_in(stderr), None)
    ended_by_itself = outcome.ended_by == "exit"
    return CompletedOutput(
        exit_code=outcome.exit_code if ended_by_itself else None,
        stdout=stdout.decode(errors="replace"),
        stderr=stderr.decode(errors="replace"),
        timed_out=outcome.ended_by == "timeout",
        start_error=outcome.start_error,
    )


def _kept_in(buffer: bytearray) -> OutputStream:
    return OutputStream(
        path=None,
        max_bytes=_MAX_OUTPUT_BYTES,
        max_line_bytes=_MAX_OUTPUT_BYTES,
        redact=None,
        lines_wanted=False,
        keep=buffer.extend,
    )
