"""Runs to compare, written in a line: ``a_run("a", {"greets": "ppf", "deletes": "e"})``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from skillup.history.comparison import Comparison
from skillup.history.reference import Reference
from skillup.history.runs import CaseKey, RunOutcomes, Status, TrialOutcome

STATUSES: dict[str, Status] = {"p": "PASS", "f": "FAIL", "e": "ERROR", "s": "SKIP", "n": "NOT_RUN"}


Cases = Mapping[str | CaseKey, str]
"""What came of the trials of each case, a letter for a trial."""


def a_key(
    case_id: str, *, suite: str = "demo", engine: str = "scripted", variant: str = "with_skill"
) -> CaseKey:
    return CaseKey(suite, case_id, engine, variant)


def trials_of(key: CaseKey, marks: str, *, cost: float | None = None) -> list[TrialOutcome]:
    """A trial for each letter of `marks`; a pass scores 1, the rest 0."""
    return [
        TrialOutcome(
            key=key,
            trial=number,
            status=STATUSES[mark],
            score=1.0 if mark == "p" else 0.0,
            cost_usd=cost,
            duration_ms=1000,
            reason=f"because of {mark}",
        )
        for number, mark in enumerate(marks, start=1)
    ]


def a_run(
    run_id: str,
    cases: Cases,
    *,
    cost: float | None = None,
    gates: Mapping[str, Any] | None = None,
    started_at: str | None = None,
    path: str = "/nowhere",
) -> RunOutcomes:
    """A run; ids sort as the times at which runs began."""
    trials = [
        trial
        for key, marks in cases.items()
        for trial in trials_of(key if isinstance(key, CaseKey) else a_key(key), marks, cost=cost)
    ]
    return RunOutcomes(
        run_id=run_id,
        started_at=started_at or f"2026-01-01T00:00:00.000Z {run_id}",
        path=path,
        finished=all(trial.status != "NOT_RUN" for trial in trials),
        trials=tuple(trials),
        gates={suite: dict(gates or {}) for suite in {trial.key.suite for trial in trials}},
    )


def compared_with(nights: Sequence[RunOutcomes], b: RunOutcomes, why: str = "") -> Comparison:
    return Comparison(Reference(tuple(nights), why), b)
