"""How cases fared over runs: one line for each, and when those that fail began to."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

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
    unknown: int
    """Runs between the last pass and the first failure that gave no verdict: it may have begun
    there."""


@dataclass(frozen=True, slots=True)
class ChangePoint:
    """A case of several trials a run, whose pass rate surely fell, and did not surely rise."""

    first: RunHead  # The run since which it is lower: where chance explains the difference worst
    before: Passes
    since: Passes
    runs: int  # With a verdict, from the first on
    p: float  # Of Fisher's test there, times the number of runs where it could have fallen
    newest: Passes  # Of the newest run with a verdict


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


SuiteState = State | Literal["pass_of_some", "fail_and_not_run"]
"""`pass_of_some`: what ran passed, but a case of earlier runs was not in this one.
`fail_and_not_run`: a case failed, at least at times, and another has no verdict, for an error or
the end of the run."""


@dataclass(frozen=True, slots=True)
class SuiteHistory:
    """A suite over its newest runs, the oldest first."""

    suite: str
    runs: tuple[RunHead, ...]
    cases: tuple[CaseHistory, ...]
    older: frozenset[CaseKey] = frozenset()
    """Those of them that ran before, too, in runs that are not shown."""

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

    def states(self) -> list[SuiteState]:
        """The suite in each run: failing where a case failed, an error where one was not run.

        A run that lacks a case that an earlier one ran passed with some of them, at best.
        """
        cases = self.counted
        found: list[SuiteState] = []
        known = {case.key for case in cases} & self.older
        for place in range(len(self.runs)):
            here = {case.key: case.tallies[place] for case in cases}
            ran = {key for key, own in here.items() if own.state != "absent"}
            state = _in_one_word(here.values())
            found.append("pass_of_some" if state == "pass" and known - ran else state)
            known |= ran
        return found


def _in_one_word(tallies: Iterable[CaseTally]) -> SuiteState:
    states = {tally.state for tally in tallies}
    if states & {"fail", "mixed"}:
        if states & {"error", "not_held"}:
            return "fail_and_not_run"
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
        before = {key for key, of in suites[suite].items() if next(iter(of)) not in shown}
        found.append(SuiteHistory(suite, shown, cases, frozenset(before)))
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
    first: RunHead | None = None
    last_pass: RunHead | None = None
    count = unknown = 0
    for run, tally in runs:
        if tally.state == "pass":
            first, last_pass, count, unknown = None, run, 0, 0
        elif tally.judged:
            first = first or run
            count += 1
        elif first is None:
            unknown += 1
    if first is None:
        return None
    return FailingSince(first, last_pass, count, unknown if last_pass else 0)


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
        newest=series[-1],
    )


def worst_first(cases: Sequence[CaseHistory], most: int) -> list[CaseHistory]:
    """`most` of the cases, all in their own order if there are no more than that.

    Else the worst come first: those that fail or fell, the latest to begin before the others; then
    what failed in its newest run, had no verdict there, or did not always pass.
    """
    if len(cases) <= most:
        return list(cases)

    def began(case: CaseHistory) -> str:
        worse = case.failing or case.fell
        return worse.first.started_at if worse else ""

    def rank(case: CaseHistory) -> int:
        if case.key.variant != WITH_SKILL:
            return 4
        newest = next((own.state for own in case.tallies[::-1] if own.state != "absent"), "absent")
        ranks = (
            bool(case.failing or case.fell),
            newest in ("fail", "mixed"),
            newest in ("error", "not_held"),
            bool(case.total.failed),
            True,
        )
        return ranks.index(True)

    return sorted(sorted(cases, key=began, reverse=True), key=rank)[:most]
