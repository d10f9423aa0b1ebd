"""Whoever watches a run may fail: the run goes on, and no trial answers for it."""

from __future__ import annotations

import errno
import os
from copy import copy
from pathlib import Path
from typing import Any

import pytest

from tests.support.plans import Quiet, a_plan, run_plan

QUICK = {"scripted": [{"say": "hi"}], "assertions": [{"contains": "hi"}]}
BRANCHES = [{"name": "x", "turns": ["x"]}, {"name": "y", "turns": ["y"]}]
SHARING = {"input": {"turns": [{"content": "hi", "branches": BRANCHES}]}, **QUICK}


class Failing(Quiet):
    """Fails whenever `method` is called; of events, with those of `kind`."""

    def __init__(self, method: str, failure: BaseException, kind: str = "") -> None:
        def fail(*about: Any) -> None:
            if not kind or about[0].kind == kind:
                raise copy(failure)

        setattr(self, method, fail)


@pytest.mark.parametrize(
    ("method", "kind", "failure"),
    [
        ("trial_started", "", OSError(errno.EPIPE, os.strerror(errno.EPIPE))),
        ("trial_event", "preparing", OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))),
        ("trial_event", "item", SystemExit(1)),
        ("trial_event", "turn_ended", ValueError("a defect")),
        ("trial_finished", "", ValueError("a defect")),
    ],
)
def test_the_run_goes_on_and_says_once_what_failed_and_where(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    method: str,
    kind: str,
    failure: BaseException,
) -> None:
    plan = a_plan(tmp_path, {"a": QUICK, "b": QUICK, "c": SHARING})
    grades = run_plan(plan, tmp_path / "run", Failing(method, failure, kind), parallel=3)
    assert [grade.status for grade in grades.values()] == ["PASS"] * 4
    (said,) = capsys.readouterr().err.splitlines()
    assert repr(failure) in said
    assert "test_observers.py:" in said
