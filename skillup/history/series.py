"""How cases fared over runs: one line for each, and when those that fail began to."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from skillup.history.index import CaseInRun, RunHead
from skillup.history.runs import ABSENT, WITH_SKILL, CaseKey, CaseTally, State, together
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

    first: RunHead  # The run where it began: the first without a pass since it last passed
    last_pass: RunHead | None  # The last run where it passed; None: there is none in the index
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
    failing = failing_since(runs) if key.variant == WITH_SKILL else None
    return CaseHistory(key, shown, failing)


def failing_since(runs: Iterable[tuple[RunHead, CaseTally]]) -> FailingSince | None:
    """When a case began to fail, at least at times; None if it always passed in its last run.

    Runs without a verdict are no failure, and no end of one. `runs` begin with the oldest.
    """
    last_pass: RunHead | None = None
    failed: list[tuple[RunHead, CaseTally]] = []
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
