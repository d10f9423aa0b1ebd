"""Processes: started here and nowhere else, watched while they run, and none outlives its turn.

    run_process(request, on_line) -> ProcessOutcome     an agent's turn
    run_quiet(argv, ...) -> CompletedOutput             a short helper command
    process_register(directory), end_leftovers(directory)   what a killed skillup left behind

Whatever happens to a process is data in its outcome.
"""

from __future__ import annotations

from skillup.process.spawn import (
    CompletedOutput,
    OnLine,
    ProcessOutcome,
    ProcessRequest,
)
from skillup.process.supervise import run_process, run_quiet
from skillup.process.tree import (
    TRIAL_VARIABLE,
    ProcessRow,
    end_leftovers,
    kill_running,
    new_marker,
    process_register,
)

__all__ = [
    "TRIAL_VARIABLE",
    "CompletedOutput",
    "OnLine",
    "ProcessOutcome",
    "ProcessRequest",
    "ProcessRow",
    "end_leftovers",
    "kill_running",
    "new_marker",
    "process_register",
    "run_process",
    "run_quiet",
]
