"""How suites and cases fared over runs, and when those that fail began to."""

from __future__ import annotations

import fnmatch
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from skillup.frozen import frozen
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
    together,
)
from skillup.stats import Interval, interval_over_cases, wilson


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
    """A case that regressed, or failed at least at times in the last run that gave it a verdict."""

    first: RunOutcomes  # The run with which it regressed; else the first since it last passed
    last_pass: RunOutcomes | None  # The last run where it passed; None: there is none in the index
    runs: int  # With a verdict, from the first on
    word: str  # `failing` or `not always passing`, as in the last of them
    statement: Statement | None  # If it regressed, and has not recovered


@frozen
class CaseHistory:
    key: CaseKey
    tallies: tuple[CaseTally, ...]  # One for each run of its suite that is shown
    failing: FailingSince | None
    """Found in all runs of the index, not only in those shown; None also without the skill: that a
    baseline fails is nobody's regression.
    """

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


def histories(
    runs: Iterable[RunOutcomes],
    chosen: SeriesFilter,
    last: int,
    accepted: Mapping[CaseKey, Since] | None = None,
) -> list[SuiteHistory]:
    """The suites over their newest `last` of `runs` (the oldest first), with the cases of those.
    `accepted`: by case, the run with which its reference begins anew.
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
        nights = [Night.of(_only(run, own.keys())) for run in assessed]
        red = assess(nights, begins(assessed, accepted or {})).red
        cases = []
        for key, by_run in own.items():
            tallies = tuple(by_run.get(run.run_id, ABSENT) for run in shown)
            if chosen.takes(key) and any(tally is not ABSENT for tally in tallies):
                judged = [(by_id[i], tally) for i, tally in by_run.items() if tally.judged]
                failing = _failing(judged, red.get(key)) if key.variant == WITH_SKILL else None
                cases.append(CaseHistory(key, tallies, failing))
        if cases:
            found.append(SuiteHistory(suite, shown, tuple(cases)))
    return found


def _failing(
    judged: Sequence[tuple[RunOutcomes, CaseTally]], said: Statement | None
) -> FailingSince | None:
    """Of the runs with a verdict; None if it always passed in the last one, and is not red."""
    passes = [place for place, (_, tally) in enumerate(judged) if tally.state == "pass"]
    first = passes[-1] + 1 if passes else 0
    if said is not None:
        ids = [run.run_id for run, _ in judged]
        first = ids.index(said.since or said.run_id)
    elif first == len(judged):
        return None
    word = "not always passing" if judged[-1][1].passed else "failing"
    last_pass = judged[passes[-1]][0] if passes else None
    return FailingSince(judged[first][0], last_pass, len(judged) - first, word, said)


def _only(run: RunOutcomes, keys: Collection[CaseKey]) -> RunOutcomes:
    return replace(run, trials=tuple(trial for trial in run.trials if trial.key in keys))
