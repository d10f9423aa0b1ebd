"""`--until-decided`: which cases are decided, and which of their trials are needed no more."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from skillup.plan import Job
from skillup.schema.grade import Grade
from skillup.stats.sequential import ERROR_RATE, Side, pass_rate_threshold, side_of


@dataclass(slots=True)
class CaseTest:
    """The test of one case, on one engine, in one variant."""

    suite: str
    case_id: str
    engine: str
    variant: str
    threshold: float
    trials: list[int] = field(default_factory=list)
    """Those that are planned, in order."""
    side: Side = "undecided"
    passes: int = 0
    failures: int = 0
    _ended: dict[int, bool | None] = field(default_factory=dict)
    _next: int = 0

    def count(self, trial: int, passed: bool | None) -> None:
        """A trial has ended; None: without a verdict.

        Verdicts are looked at in the order of the trials, not as they come in: a trial that fails
        may take longer than one that passes.
        """
        self._ended[trial] = passed
        while self.side == "undecided" and self._next < len(self.trials):
            number = self.trials[self._next]
            if number not in self._ended:
                return
            self._next += 1
            outcome = self._ended[number]
            if outcome is not None:
                self.passes, self.failures = self.passes + outcome, self.failures + (not outcome)
                self.side = side_of(self.passes, self.failures, self.threshold)

    def about(self) -> dict[str, Any]:
        """For the journal."""
        return {
            "suite": self.suite,
            "case": self.case_id,
            "engine": self.engine,
            "variant": self.variant,
            "verdict": self.side,
            "threshold": self.threshold,
            "error_rate": ERROR_RATE,
            "trials": self.passes + self.failures,
            "passed": self.passes,
        }


class EarlyStopping:
    """The tests of all cases of a plan."""

    def __init__(self, jobs: Iterable[Job], run_info: Mapping[str, Any]) -> None:
        """`run_info` is what `run.json` says: suites may have been edited since the run began."""
        self._tests: dict[tuple[str, str, str, str], CaseTest] = {}
        self._by_job: dict[str, CaseTest] = {}
        self._dependents: dict[str, list[str]] = {}
        for job in jobs:
            threshold = threshold_of(job.suite.name, run_info)
            names = (job.suite.name, job.loaded.case.id, job.profile.name, job.variant)
            key = (str(job.suite.path), *names[1:])
            test = self._tests.setdefault(key, CaseTest(*names, threshold))
            test.trials.append(job.trial)
            self._by_job[job.id] = test
            for needed in job.depends_on:
                self._dependents.setdefault(needed, []).append(job.id)

    def tests(self) -> Iterator[CaseTest]:
        """Every case's, in the order of the plan."""
        yield from self._tests.values()

    def count(self, job: Job, grade: Grade) -> CaseTest | None:
        """A trial has ended; its case's test, if that has just been decided.

        An error, and a skip, say nothing of the pass rate.
        """
        test = self._by_job[job.id]
        before = test.side
        test.count(job.trial, {"PASS": True, "FAIL": False}.get(grade.status))
        return test if before == "undecided" and test.side != "undecided" else None

    def needs(self, job: Job) -> bool:
        """Whether the trial may still say something: of its case, or of one that depends on it."""
        waiting, seen = [job.id], {job.id}
        while waiting:
            current = waiting.pop()
            if self._by_job[current].side == "undecided":
                return True
            others = [name for name in self._dependents.get(current, ()) if name not in seen]
            seen.update(others)
            waiting += others
        return False


def threshold_of(suite: str, run_info: Mapping[str, Any]) -> float:
    """The pass rate that the suite's cases are compared with, by what `run.json` says."""
    gates = ((run_info.get("suites") or {}).get(suite) or {}).get("gates") or {}
    given = (run_info.get("request") or {}).get("pass_rate")
    return pass_rate_threshold(given, gates.get("min_pass_rate"))
