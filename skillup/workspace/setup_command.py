"""The shell commands that finish a workspace (``setup_steps``, ``context.setup``)."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from pathlib import Path

from skillup.process import ProcessRequest, run_process
from skillup.workspace.failure import PreparationError

_KEPT_LINES = 40
_LINE_BYTES = 1000


async def run_setup_command(
    command: str,
    field: str,
    workspace: Path,
    *,
    env: Mapping[str, str],
    marker: str,
    timeout_seconds: float,
) -> None:
    """Runs ``command`` by ``sh -c`` in the workspace; ``field`` is where the user wrote it.

    Raises PreparationError, with the end of its output, unless it ends with exit code 0 in time.
    """
    last_lines: deque[bytes] = deque(maxlen=_KEPT_LINES)
    outcome = await run_process(
        ProcessRequest(
            argv=("sh", "-c", command),
            cwd=workspace,
            env=env,
            timeout_seconds=timeout_seconds,
            marker=marker,
        ),
        lambda line: last_lines.append(line[:_LINE_BYTES]),
    )
    if outcome.start_error is not None:
        message = f"`{field}`: `{command}` could not be started; is there a shell on PATH?"
        raise PreparationError(message, evidence=outcome.start_error)
    if outcome.exit_code == 0 and outcome.ended_by == "exit":
        return
    if outcome.ended_by == "timeout":
        how = f"did not end within {timeout_seconds:g} s; make it shorter, or raise the timeout"
    elif outcome.ended_by == "output_limit":
        how = "wrote too much output; make it quieter"
    elif outcome.signal is not None:
        how = f"was ended by signal {outcome.signal}; run it by hand in a copy of the fixture"
    else:
        how = (
            f"ended with exit code {outcome.exit_code}; correct it, or install what it needs on "
            "this machine"
        )
    output = b"\n".join(last_lines).decode(errors="replace")
    raise PreparationError(
        f"`{field}`: `{command}` {how}", evidence=f"{output}\n{outcome.stderr_tail}"
    )
