"""The command that goes on with a run."""

from __future__ import annotations

from pathlib import Path

from skillup.app.request import RunRequest
from skillup.app.resume import resume_command

RUN = Path("/runs/a night")


def test_it_goes_on_where_the_trials_ran() -> None:
    request = RunRequest(executor="dask", scheduler="tcp://10.0.0.1:8786")
    assert resume_command(RUN, request, None) == (
        "skillup run --resume '/runs/a night' --executor dask --scheduler tcp://10.0.0.1:8786"
    )


def test_it_goes_on_with_the_same_index() -> None:
    command = resume_command(RUN, RunRequest(), "/var/runs of us.sqlite")
    assert command == "skillup run --resume '/runs/a night' --index '/var/runs of us.sqlite'"
