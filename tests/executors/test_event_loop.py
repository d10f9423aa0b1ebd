"""What a run does on its event loop takes little, however large the workspaces are."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.benchmarks.bench_loop import measured


@pytest.mark.slow
def test_no_step_of_a_run_with_large_workspaces_keeps_the_loop_busy(tmp_path: Path) -> None:
    """F8, F9: what grew with the workspace, such as its list as JSON, stopped all other trials.

    It did so in each trial: fewer gaps than trials may be the interpreter's own (collector).
    """
    lag = measured(tmp_path, trials=3, files=12_000, parallel=2)

    assert len(lag.busy) == 10
    assert lag.busy[2] < lag.scan / 40
