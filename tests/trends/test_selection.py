"""What a run was asked to choose."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from skillup.history.outcomes import RunSelection, selection_of


def asked(root: Path, **request: Any) -> RunSelection:
    """The selection of a run in `root`, of a suite in `root/cases`."""
    suites = {"demo": {"path": str(root / "cases" / "eval.yaml")}}
    given = {"directory": str(root), "paths": ["cases"], "cases": [], "tags": []} | request
    found = selection_of({"suites": suites, "request": given})
    assert found is not None
    return found


def test_the_same_was_asked_for_from_wherever_it_was(tmp_path: Path) -> None:
    whole = asked(tmp_path)
    assert not whole.narrowed
    assert asked(tmp_path / "cases", paths=["."]) == whole
    assert asked(tmp_path, trials=5, parallel=4, max_cost_usd=1.0, seed=3) == whole


@pytest.mark.parametrize(
    "request_",
    [
        {"cases": ["b"]},
        {"tags": ["quick"]},
        {"item": "7"},
        {"sample_size": 3},
        {"paths": ["cases/b.yaml"]},
    ],
)
def test_fewer_cases_of_a_suite_are_less_than_the_whole(
    tmp_path: Path, request_: dict[str, Any]
) -> None:
    chosen = asked(tmp_path, **request_)
    assert chosen.narrowed
    assert chosen.asked != asked(tmp_path).asked


def test_a_suite_by_its_file_is_whole(tmp_path: Path) -> None:
    assert not asked(tmp_path, paths=["cases/eval.yaml"]).narrowed


def test_other_samples_and_engines_were_asked_for_otherwise(tmp_path: Path) -> None:
    samples = {asked(tmp_path, sample_size=3, seed=seed).asked for seed in (1, 1, 2)}
    assert len(samples) == 2
    assert asked(tmp_path, engines=["codex"]) != asked(tmp_path)


@pytest.mark.parametrize("info", [{}, {"request": None}, {"request": "odd"}])
def test_a_run_that_does_not_tell(info: dict[str, Any]) -> None:
    assert selection_of(info) is None
