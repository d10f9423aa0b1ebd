"""How cases fared over runs: one line for each, and when those that fail began to."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean

from skillup.trends.index.reading import CaseInRun, RunHead
from skillup.trends.outcomes import CaseKey
from skillup.trends.statistics.proportions import Interval, wilson
from skillup.trends.tallies import ABSENT, State, Tally


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which suites, cases and engines, by globs (an empty tuple: all), and which variant."""

    suites: tuple[str, ...] = ()
    cases: tuple[str, ...] = ()
    engines: tuple[str, ...] = ()
    variant: str | None = None

    def takes(self, key: CaseKey) -> bool:
        """Whether the case is wanted."""
        return (
            _any(key.suite, self.suites)
            and _any(key.case_id, self.cases)
            and _any(key.engine, self.engines)
            and self.variant in (None, key.variant)
        )


def _any(name: str, globs: Sequence[str]) -> bool:
    return not globs or any(fnmatch.fnmatchcase(name, glob) for glob in globs)


@dataclass(frozen=True, slots=True)
class FailingSince:
    """A case whose last verdict is not a pass."""

    first: RunHead
    """The run where it began: the first without a pass since it last passed."""
    last_pass: RunHead | None
    """The last run where all its trials passed; None: there is none in the index."""
    runs: int
    """With a verdict, from the first on."""
    in_part: bool
    """Some trials of the newest run with a verdict did pass."""
    unknown: int
    """Runs between the last pass and the first failure that gave no verdict: it may have begun
    there."""


@dataclass(frozen=True, slots=True)
class CaseHistory:
    """One case over the runs shown."""

    key: CaseKey
    tallies: tuple[Tally, ...]
    """One for each run of its suite that is shown."""
    failing: FailingSince | None
    """Found in all runs of the index, not only in those shown."""

    @property
    def passed(self) -> int:
        """Trials that passed, in the runs shown."""
        return sum(tally.passed for tally in self.tallies)

    @property
    def judged(self) -> int:
        """Trials with a verdict, in the runs shown."""
        return sum(tally.judged for tally in self.tallies)

    @property
    def interval(self) -> Interval | None:
        """Wilson's, at 95 %, of the pass rate over the runs shown; None without a verdict."""
        return wilson(self.passed, self.judged) if self.judged else None

    def mean(self, name: str) -> float | None:
        """Of `score`, `cost_usd` or `duration_ms`, over the runs shown that tell it."""
        values = [getattr(tally, name) for tally in self.tallies]
        known = [value for value in values if value is not None]
        return fmean(known) if known else None


@dataclass(frozen=True, slots=True)
class SuiteHistory:
    """A suite over its newest runs, the oldest first."""

    suite: str
    runs: tuple[RunHead, ...]
    cases: tuple[CaseHistory, ...]

    def states(self) -> list[State]:
        """The suite in each run: failing where a case failed, an error where one was not run."""
        places = range(len(self.runs))
        return [_together(case.tallies[place] for case in self.cases) for place in places]


def _together(tallies: Iterable[Tally]) -> State:
    states = {tally.state for tally in tallies}
    if states & {"fail", "mixed"}:
        return "fail" if not states & {"pass", "mixed"} else "mixed"
    order: tuple[State, ...] = ("error", "not_held", "pass", "skip")
    return next((state for state in order if state in states), "absent")


def histories(rows: Iterable[CaseInRun], wanted: Wanted, last: int) -> list[SuiteHistory]:
    """The suites over their newest `last` runs; `rows` begin with the oldest run.

    Cases that none of these runs held are left out.
    """
    suites: dict[str, dict[CaseKey, dict[RunHead, Tally]]] = {}
    runs: dict[str, dict[RunHead, None]] = {}
    for run, key, tally in rows:
        if wanted.takes(key):
            runs.setdefault(key.suite, {})[run] = None
            suites.setdefault(key.suite, {}).setdefault(key, {})[run] = tally
    found = []
    for suite in sorted(suites):
        shown = tuple(runs[suite])[-last:]
        cases = tuple(
            CaseHistory(key, tuple(of.get(run, ABSENT) for run in shown), failing_since(of.items()))
            for key, of in suites[suite].items()
            if any(run in of for run in shown)
        )
        found.append(SuiteHistory(suite, shown, cases))
    return found


def failing_since(runs: Iterable[tuple[RunHead, Tally]]) -> FailingSince | None:
    """When a case began to fail; None if every trial passed when it last had a verdict.

    Runs without a verdict are no failure, and no end of one. `runs` begin with the oldest.
    """
    first: RunHead | None = None
    last_pass: RunHead | None = None
    count = unknown = 0
    in_part = False
    for run, tally in runs:
        if tally.state == "pass":
            first, last_pass, count, unknown = None, run, 0, 0
        elif tally.judged:
            first = first or run
            count += 1
            in_part = tally.passed > 0
        elif first is None:
            unknown += 1
    if first is None:
        return None
    return FailingSince(first, last_pass, count, in_part, unknown if last_pass else 0)
