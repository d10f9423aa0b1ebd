"""The command that goes on with a run."""

from __future__ import annotations

from pathlib import Path

import pytest

from skillup.app.request import RunRequest
from skillup.app.resume import more_budget, resume_command
from skillup.executors.budgets import RunLimits, StopPolicy
from skillup.schema.grade import Stop

RUN = Path("/runs/a night")


def test_it_goes_on_where_the_trials_were_held() -> None:
    request = RunRequest(executor="dask", scheduler="tcp://10.0.0.1:8786")
    stop = Stop(kind="time_limit", message="it is late")
    stopping = StopPolicy(RunLimits(time_limit_seconds=5400.0))
    assert resume_command(RUN, request, None) + more_budget(stop, stopping) == (
        "skillup run --resume '/runs/a night' --executor dask --scheduler tcp://10.0.0.1:8786 "
        "--time-limit 5400s"
    )


@pytest.mark.parametrize("stop", [None, Stop(kind="quota", message="nothing is left")])
def test_without_a_limit_that_was_reached_none_is_given(stop: Stop | None) -> None:
    stopping = StopPolicy(RunLimits(max_cost_usd=1.0, max_fail=3))
    assert more_budget(stop, stopping) == ""


@pytest.mark.parametrize(
    ("limit", "more"), [(0.00000001, "0.0001"), (0.25, "0.2500"), (1.2, "1.20"), (3.00001, "3.01")]
)
def test_an_amount_is_never_rounded_down(limit: float, more: str) -> None:
    stop = Stop(kind="max_cost_usd", message="spent")
    stopping = StopPolicy(RunLimits(max_cost_usd=limit))
    assert more_budget(stop, stopping) == f" --max-cost-usd {more}"


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
