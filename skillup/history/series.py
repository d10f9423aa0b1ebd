"""How cases fared over runs: one line for each, and when those that fail began to."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from skillup.history.index import CaseInRun, RunHead
from skillup.history.runs import ABSENT, WITH_SKILL, CaseKey, CaseTally, State, together
from skillup.stats.change_point import Passes, fall, rise
from skillup.stats.paired import interval_over_cases
from skillup.stats.proportions import Interval, wilson

_ALPHA = 0.05 + 1e-9
"""The chance of a false alarm; p-values that it equals but for rounding are within it."""


@dataclass(frozen=True, slots=True)
class SeriesFilter:
    """Which suites, cases and engines, by globs (an empty tuple: all), and which variant."""

    suites: tuple[str, ...] = ()
    cases: tuple[str, ...] = ()
    engines: tuple[str, ...] = ()
    variant: str | None = None

    def takes(self, key: CaseKey) -> bool:
        return (
            matches(key.suite, self.suites)
            and matches(key.case_id, self.cases)
            and matches(key.engine, self.engines)
            and self.variant in (None, key.variant)
        )


def matches(name: str, globs: Sequence[str]) -> bool:
    return not globs or any(fnmatch.fnmatchcase(name, glob) for glob in globs)


@dataclass(frozen=True, slots=True)
class FailingSince:
    """A case that ran once in each run, whose last verdict is not a pass."""

    first: RunHead  # The run where it began: the first without a pass since it last passed
    last_pass: RunHead | None  # The last run where it passed; None: there is none in the index
    runs: int  # With a verdict, from the first on


@dataclass(frozen=True, slots=True)
class ChangePoint:
    """A case of several trials a run, whose pass rate surely fell, and did not surely rise."""

    first: RunHead  # The run since which it is lower: where chance explains the difference worst
    before: Passes
    since: Passes
    runs: int  # With a verdict, from the first on
    p: float  # Of Fisher's test there, times the number of runs where it could have fallen


@dataclass(frozen=True, slots=True)
class CaseHistory:
    key: CaseKey
    tallies: tuple[CaseTally, ...]  # One for each run of its suite that is shown
    failing: FailingSince | None
    """Found in all runs of the index, not only in those shown; None also without the skill, and
    for a case that ran several times in a run."""
    fell: ChangePoint | None  # The same for a case that ran several times in a run

    @property
    def total(self) -> CaseTally:
        return together(self.tallies)

    @property
    def interval(self) -> Interval | None:
        """Wilson's, at 95 %, of the pass rate over the runs shown; None without a verdict."""
        total = self.total
        return wilson(total.passed, total.judged) if total.judged else None


@dataclass(frozen=True, slots=True)
class SuiteHistory:
    """A suite over its newest runs, the oldest first."""

    suite: str
    runs: tuple[RunHead, ...]
    cases: tuple[CaseHistory, ...]

    @property
    def counted(self) -> Sequence[CaseHistory]:
        """Without the skill, cases count only if there are no others."""
        return [case for case in self.cases if case.key.variant == WITH_SKILL] or self.cases

    @property
    def total(self) -> CaseTally:
        return together(own for case in self.counted for own in case.tallies)

    @property
    def interval(self) -> Interval | None:
        """Of the pass rate, at 95 %; None without a verdict. A case on several engines is one."""
        cases: dict[str, list[CaseTally]] = {}
        for case in self.counted:
            cases.setdefault(case.key.case_id, []).extend(case.tallies)
        totals = [together(tallies) for tallies in cases.values()]
        return interval_over_cases([(own.passed, own.judged) for own in totals if own.judged])

    def states(self) -> list[State]:
        """The suite in each run: failing where a case failed, an error where one was not run."""
        return [
            _in_one_word({case.tallies[place].state for case in self.counted})
            for place in range(len(self.runs))
        ]


def _in_one_word(states: set[State]) -> State:
    if states & {"fail", "mixed"}:
        return "mixed" if states & {"pass", "mixed"} else "fail"
    order: tuple[State, ...] = ("error", "not_held", "pass", "skip")
    return next((state for state in order if state in states), "absent")


def histories(rows: Iterable[CaseInRun], chosen: SeriesFilter, last: int) -> list[SuiteHistory]:
    """The suites over their newest `last` runs; `rows` begin with the oldest run.

    Cases that none of these runs had are left out.
    """
    suites: dict[str, dict[CaseKey, dict[RunHead, CaseTally]]] = {}
    runs: dict[str, dict[RunHead, None]] = {}
    for run, key, tally in rows:
        if chosen.takes(key):
            runs.setdefault(key.suite, {})[run] = None
            suites.setdefault(key.suite, {}).setdefault(key, {})[run] = tally
    found = []
    for suite in sorted(suites):
        shown = tuple(runs[suite])[-last:]
        cases = tuple(
            _case(key, tuple(of.get(run, ABSENT) for run in shown), list(of.items()))
            for key, of in suites[suite].items()
            if any(run in of for run in shown)
        )
        found.append(SuiteHistory(suite, shown, cases))
    return found


def _case(
    key: CaseKey, shown: tuple[CaseTally, ...], runs: Sequence[tuple[RunHead, CaseTally]]
) -> CaseHistory:
    """`runs`: all that are indexed. That a baseline fails is nobody's regression."""
    several = any(own.judged > 1 for _, own in runs)
    counted = key.variant == WITH_SKILL
    failing = failing_since(runs) if counted and not several else None
    return CaseHistory(key, shown, failing, fell_at(runs) if counted and several else None)


def failing_since(runs: Iterable[tuple[RunHead, CaseTally]]) -> FailingSince | None:
    """When a case that ran once in each run began to fail; None if its last verdict is a pass.

    Runs without a verdict are no failure, and no end of one. `runs` begin with the oldest.
    """
    last_pass: RunHead | None = None
    failed: list[RunHead] = []
    for run, tally in runs:
        if tally.state == "pass":
            last_pass, failed = run, []
        elif tally.judged:
            failed.append(run)
    return FailingSince(failed[0], last_pass, len(failed)) if failed else None


def fell_at(runs: Iterable[tuple[RunHead, CaseTally]]) -> ChangePoint | None:
    """Since when the pass rate of a case is surely lower; None: it cannot be told, or is not so.

    None also if since then it surely rose. `runs` begin with the oldest.
    """
    judged = [(run, Passes(own.passed, own.judged)) for run, own in runs if own.judged]
    series = [counts for _, counts in judged]
    fallen = fall(series)
    if fallen is None or fallen.p > _ALPHA:
        return None
    risen = rise(series[fallen.place :])
    if risen is not None and risen.p <= _ALPHA:
        return None
    return ChangePoint(
        first=judged[fallen.place][0],
        before=fallen.before,
        since=fallen.since,
        runs=len(series) - fallen.place,
        p=fallen.p,
    )
