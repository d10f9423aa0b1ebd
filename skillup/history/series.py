"""How cases fared over runs: one line for each, and when those that fail began to."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable, Sequence

from skillup.frozen import frozen
from skillup.history.runs import (
    ABSENT,
    WITH_SKILL,
    CaseKey,
    CaseTally,
    RunOutcomes,
    State,
    by_case,
    together,
)
from skillup.stats import Fall, Interval, Passes, fall, interval_over_cases, wilson

_ALPHA = 0.05 + 1e-9
"""The chance of a false alarm; p-values that it equals but for rounding are within it."""


@frozen
class SeriesFilter:
    """Which suites, cases and engines, by globs (an empty tuple: all), and which variant."""

    suites: tuple[str, ...] = ()
    cases: tuple[str, ...] = ()
    engines: tuple[str, ...] = ()
    variant: str | None = None

    def takes(self, key: CaseKey) -> bool:
        return self.variant in (None, key.variant) and all(
            not globs or any(fnmatch.fnmatchcase(name, glob) for glob in globs)
            for name, globs in zip(key, (self.suites, self.cases, self.engines), strict=False)
        )


@frozen
class FailingSince:
    """A case that failed, at least at times, in the last run that gave it a verdict."""

    first: RunOutcomes  # The run where it began: the first without a pass since it last passed
    last_pass: RunOutcomes | None  # The last run where it passed; None: there is none in the index
    runs: int  # With a verdict, from the first on
    word: str  # `failing` or `not always passing`, as in the last of them


@frozen
class ChangePoint:
    """A case of several trials a run, whose pass rate surely fell, and did not surely rise."""

    first: RunOutcomes  # The run since which it is lower: where chance explains it worst
    runs: int  # With a verdict, from the first on
    fall: Fall


@frozen
class CaseHistory:
    key: CaseKey
    tallies: tuple[CaseTally, ...]  # One for each run of its suite that is shown
    failing: FailingSince | None
    """Found in all runs of the index, not only in those shown; None also without the skill."""
    fell: ChangePoint | None  # In the same runs

    @property
    def total(self) -> CaseTally:
        return together(self.tallies)

    @property
    def interval(self) -> Interval | None:
        """Wilson's, at 95 %, of the pass rate over the runs shown; None without a verdict."""
        total = self.total
        return wilson(total.passed, total.judged) if total.judged else None


@frozen
class SuiteHistory:
    """A suite over its newest runs, the oldest first."""

    suite: str
    runs: tuple[RunOutcomes, ...]
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
        found: list[State] = []
        order: tuple[State, ...] = ("fail", "error", "not_started", "pass", "skip")
        for place in range(len(self.runs)):
            states = {case.tallies[place].state for case in self.counted}
            if "mixed" in states or states >= {"fail", "pass"}:
                found.append("mixed")
            else:
                found.append(next((state for state in order if state in states), "absent"))
        return found


def histories(runs: Iterable[RunOutcomes], chosen: SeriesFilter, last: int) -> list[SuiteHistory]:
    """The suites over their newest `last` of `runs` (the oldest first), with the cases of those."""
    of_suite: dict[str, dict[str, RunOutcomes]] = {}
    of_case: dict[CaseKey, dict[str, CaseTally]] = {}
    for run in runs:
        for key, tally in by_case(run.trials).items():
            if chosen.takes(key):
                of_suite.setdefault(key.suite, {})[run.run_id] = run
                of_case.setdefault(key, {})[run.run_id] = tally
    found = []
    for suite, by_id in sorted(of_suite.items()):
        shown = tuple(by_id.values())[-last:]
        cases = []
        for key, by_run in of_case.items():
            tallies = tuple(by_run.get(run.run_id, ABSENT) for run in shown)
            if key.suite == suite and any(tally is not ABSENT for tally in tallies):
                every = [(by_id[run_id], tally) for run_id, tally in by_run.items()]
                # That a baseline fails is nobody's regression.
                own = every if key.variant == WITH_SKILL else []
                cases.append(CaseHistory(key, tallies, failing_since(own), fell_at(own)))
        found.append(SuiteHistory(suite, shown, tuple(cases)))
    return found


def failing_since(runs: Iterable[tuple[RunOutcomes, CaseTally]]) -> FailingSince | None:
    """None if it always passed in its last run. Without a verdict a run is no failure, and no end
    of one.
    """
    last_pass: RunOutcomes | None = None
    failed: list[tuple[RunOutcomes, CaseTally]] = []
    for run, tally in runs:
        if tally.state == "pass":
            last_pass, failed = run, []
        elif tally.judged:
            failed.append((run, tally))
    if not failed:
        return None
    word = "not always passing" if failed[-1][1].passed else "failing"
    return FailingSince(failed[0][0], last_pass, len(failed), word)


def fell_at(runs: Iterable[tuple[RunOutcomes, CaseTally]]) -> ChangePoint | None:
    """None also for a case that ran once in each run: that one is failing or not."""
    judged = [(run, Passes(own.passed, own.judged)) for run, own in runs if own.judged]
    series = [counts for _, counts in judged]
    fallen = fall(series) if any(counts.judged > 1 for counts in series) else None
    if fallen is None or fallen.p > _ALPHA:
        return None
    risen = fall([Passes(own.judged - own.passed, own.judged) for own in series[fallen.place :]])
    if risen is not None and risen.p <= _ALPHA:
        return None
    return ChangePoint(judged[fallen.place][0], len(series) - fallen.place, fallen)
