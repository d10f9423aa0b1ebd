"""How cases fared over runs: one line for each, and when those that fail began to."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

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
from skillup.stats.paired import interval_over_cases
from skillup.stats.proportions import Interval, wilson


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
    """A case that failed, at least at times, in the last run that gave it a verdict."""

    first: RunOutcomes  # The run where it began: the first without a pass since it last passed
    last_pass: RunOutcomes | None  # The last run where it passed; None: there is none in the index
    runs: int  # With a verdict, from the first on
    word: Literal["failing", "not always passing"]  # As in the last of them


@dataclass(frozen=True, slots=True)
class CaseHistory:
    key: CaseKey
    tallies: tuple[CaseTally, ...]  # One for each run of its suite that is shown
    failing: FailingSince | None
    """Found in all runs of the index, not only in those shown; None also without the skill."""

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
        return [
            _in_one_word({case.tallies[place].state for case in self.counted})
            for place in range(len(self.runs))
        ]


def _in_one_word(states: set[State]) -> State:
    if states & {"fail", "mixed"}:
        return "mixed" if states & {"pass", "mixed"} else "fail"
    order: tuple[State, ...] = ("error", "not_held", "pass", "skip")
    return next((state for state in order if state in states), "absent")


def histories(runs: Iterable[RunOutcomes], chosen: SeriesFilter, last: int) -> list[SuiteHistory]:
    """The suites over their newest `last` runs; `runs` begin with the oldest.

    Cases that none of these runs had are left out.
    """
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
        for key, own in of_case.items():
            tallies = tuple(own.get(run.run_id, ABSENT) for run in shown)
            if key.suite == suite and any(tally is not ABSENT for tally in tallies):
                every = [(by_id[run_id], tally) for run_id, tally in own.items()]
                # That a baseline fails is nobody's regression.
                failing = failing_since(every) if key.variant == WITH_SKILL else None
                cases.append(CaseHistory(key, tallies, failing))
        found.append(SuiteHistory(suite, shown, tuple(cases)))
    return found


def failing_since(runs: Iterable[tuple[RunOutcomes, CaseTally]]) -> FailingSince | None:
    """When a case began to fail, at least at times; None if it always passed in its last run.

    Runs without a verdict are no failure, and no end of one. `runs` begin with the oldest.
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
    word: Literal["failing", "not always passing"]
    word = "not always passing" if failed[-1][1].passed else "failing"
    return FailingSince(failed[0][0], last_pass, len(failed), word)
