"""How suites and cases fared over runs, and when those that fail began to."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import chain, pairwise
from typing import Any

from skillup.history.comparison import changes
from skillup.history.reference import NightSample, Since, begins
from skillup.history.regressions import Night, Statement, assess
from skillup.history.runs import (
    ABSENT,
    WITH_SKILL,
    CaseKey,
    CaseTally,
    RunOutcomes,
    State,
    by_case,
    fields_of,
    together,
)
from skillup.schema.past_runs import Change, HistoryData, TallyData
from skillup.stats import Interval, interval_over_cases, wilson

_TALLY = tuple(TallyData.model_fields)


def histories(
    runs: Iterable[RunOutcomes],
    last: int,
    accepted: Mapping[CaseKey, Since] | None = None,
    *,
    takes: Callable[[CaseKey], bool] = lambda _: True,
) -> HistoryData:
    """The suites over their newest `last` of `runs` (the oldest first), with the cases of those
    that it `takes`. `accepted`: by case, the run with which its reference begins anew.
    """
    of_suite: dict[str, dict[str, RunOutcomes]] = {}
    of_case: dict[CaseKey, dict[str, CaseTally]] = {}
    for run in runs:
        for key, tally in by_case(run.trials).items():
            of_suite.setdefault(key.suite, {})[run.run_id] = run
            of_case.setdefault(key, {})[run.run_id] = tally
    found = []
    for suite, by_id in sorted(of_suite.items()):
        shown = tuple(by_id.values())[-last:]
        own = {key: by_run for key, by_run in of_case.items() if key.suite == suite}
        reading, newest_first = NightSample(), enumerate(reversed(by_id.values()))
        assessed = [run for n, run in newest_first if reading.takes(run.run_id, n)][::-1]
        nights = [Night.of(only_of(run, own.keys())) for run in assessed]
        red = assess(nights, begins(assessed, accepted or {})).red
        rows: dict[CaseKey, tuple[CaseTally, ...]] = {}
        since: dict[CaseKey, dict[str, Any] | None] = {}
        for key, by_run in own.items():
            tallies = tuple(by_run.get(run.run_id, ABSENT) for run in shown)
            if takes(key) and any(tally is not ABSENT for tally in tallies):
                rows[key] = tallies
                if key.variant == WITH_SKILL:  # That a baseline fails is nobody's regression
                    judged = [(by_id[i], tally) for i, tally in by_run.items() if tally.judged]
                    since[key] = _failing(judged, red.get(key))
        if rows:
            found.append(_suite_history(suite, shown, rows, since))
    return HistoryData.model_validate({"suites": found}, from_attributes=True)


def _suite_history(
    suite: str,
    runs: Sequence[RunOutcomes],
    rows: Mapping[CaseKey, Sequence[CaseTally]],
    since: Mapping[CaseKey, Any],
) -> dict[str, Any]:
    """`rows`: of each case a tally for each of `runs`. Without the skill, cases count for the suite
    only if there are no others; one on several engines is one for the interval.
    """
    counted = {key: row for key, row in rows.items() if key.variant == WITH_SKILL} or rows
    by_id: dict[str, list[CaseTally]] = {}
    for key, row in counted.items():
        by_id.setdefault(key.case_id, []).extend(row)
    totals = [(own.passed, own.judged) for own in map(together, by_id.values()) if own.judged]
    of_runs = zip(runs, zip(*counted.values(), strict=True), changed_over(runs), strict=True)
    return {
        "suite": suite,
        **_numbers(together(chain(*counted.values())), interval_over_cases(totals)),
        "runs": [
            {
                **fields_of(run, "run_id", "started_at"),
                "state": _state_of({own.state for own in tallies}),
                "changed": changed,
            }
            for run, tallies, changed in of_runs
        ],
        "cases": [_case_history(key, runs, row, since.get(key)) for key, row in rows.items()],
    }


def _case_history(
    key: CaseKey, runs: Sequence[RunOutcomes], row: Sequence[CaseTally], since: Any
) -> dict[str, Any]:
    total = together(row)
    return {
        **key._asdict(),
        **_numbers(total, wilson(total.passed, total.judged) if total.judged else None),
        "failing_since": since,
        "runs": [
            {"run_id": run.run_id, **fields_of(own, *_TALLY)}
            for run, own in zip(runs, row, strict=True)
        ],
    }


def _numbers(total: CaseTally, between: Interval | None) -> dict[str, Any]:
    return {**fields_of(total, *_TALLY), "pass_rate": total.rate, "interval": between}


def _state_of(states: set[State]) -> State:
    """Of a suite in a run: failing where a case failed, an error where one was not run."""
    order: tuple[State, ...] = ("fail", "error", "not_started", "pass", "skip")
    if "mixed" in states or states >= {"fail", "pass"}:
        return "mixed"
    return next((state for state in order if state in states), "absent")


def changed_over(runs: Sequence[RunOutcomes]) -> list[list[Change]]:
    """By run, what was used otherwise than in the one before it."""
    return [[], *(list(changes(one, two)) for one, two in pairwise(runs))]


def _failing(
    judged: Sequence[tuple[RunOutcomes, CaseTally]], said: Statement | None
) -> dict[str, Any] | None:
    """Of all runs with a verdict; None if it always passed in the last one, and is not red."""
    passes = [place for place, (_, tally) in enumerate(judged) if tally.state == "pass"]
    first = passes[-1] + 1 if passes else 0
    if said is not None:
        first = [run.run_id for run, _ in judged].index(said.since or said.run_id)
    elif first == len(judged):
        return None
    last_pass = judged[passes[-1]][0] if passes else None
    since = {"first": judged[first][0], "last_pass": last_pass, "statement": said}
    return {**since, "runs": len(judged) - first}


def only_of(run: RunOutcomes, keys: Collection[CaseKey]) -> RunOutcomes:
    """The run, as if it had had these cases alone."""
    return replace(run, trials=tuple(trial for trial in run.trials if trial.key in keys))
