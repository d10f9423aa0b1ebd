"""The command that goes on with a run."""

from __future__ import annotations

from pathlib import Path

import pytest

from skillup.app.request import RunRequest
from skillup.app.resume import resume_command

RUN = Path("/runs/a night")


def test_it_goes_on_where_the_trials_ran() -> None:
    request = RunRequest(executor="dask", scheduler="tcp://10.0.0.1:8786")
    assert resume_command(RUN, request, None) == (
        "skillup run --resume '/runs/a night' --executor dask --scheduler tcp://10.0.0.1:8786"
    )


@pytest.mark.parametrize(
    ("index", "shown"),
    [
        ("none", "none"),
        ("/var/runs of us.sqlite", "'/var/runs of us.sqlite'"),
        ("postgresql+psycopg://host/runs", "postgresql+psycopg://host/runs"),
        ("postgresql+psycopg://me@host/runs", "postgresql+psycopg://me@host/runs"),
        ("postgresql+psycopg://me:pa@ss@host/runs", "'postgresql+psycopg://me:***@host/runs'"),
    ],
)
def test_it_goes_on_with_the_same_index_and_shows_no_password(index: str, shown: str) -> None:
    command = resume_command(RUN, RunRequest(), index)
    assert command == f"skillup run --resume '/runs/a night' --index {shown}"
