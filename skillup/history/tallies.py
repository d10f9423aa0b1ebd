"""The trials of one case in one run, summed up."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from statistics import fmean
from typing import Literal

from skillup.history.outcomes import CaseKey, TrialOutcome

State = Literal["pass", "fail", "mixed", "error", "skip", "not_held", "absent"]
"""The case in a run: all its verdicts, none, or some are PASS; or why there is no verdict."""


@dataclass(frozen=True, slots=True)
class CaseTally:
    """Counts over trials; means are over those with a verdict, and None where there is none."""

    passed: int = 0
    failed: int = 0
    errors: int = 0
    skipped: int = 0
    not_held: int = 0
    score: float | None = None
    cost_usd: float | None = None
    """Of the trials that told."""
    duration_ms: float | None = None
    reason: str = ""
    """Why the first trial that did not pass did not."""
    priced: int = 0
    """Trials with a verdict that told their cost."""

    @property
    def judged(self) -> int:
        """Trials with a verdict."""
        return self.passed + self.failed

    @property
    def not_run(self) -> int:
        """Trials that an error, or the end of the run, kept from a verdict."""
        return self.errors + self.not_held

    @property
    def rate(self) -> float | None:
        """Passes among verdicts."""
        return self.passed / self.judged if self.judged else None

    @property
    def state(self) -> State:
        """The whole in one word."""
        if self.judged:
            if not self.failed:
                return "pass"
            return "mixed" if self.passed else "fail"
        if self.errors:
            return "error"
        if self.not_held:
            return "not_held"
        return "skip" if self.skipped else "absent"


ABSENT = CaseTally()


def tally(trials: Iterable[TrialOutcome]) -> CaseTally:
    """The tally of trials of one case."""
    counts = dict.fromkeys(("PASS", "FAIL", "ERROR", "SKIP", "NOT_HELD"), 0)
    judged: list[TrialOutcome] = []
    reasons: dict[str, str] = {}
    for trial in trials:
        counts[trial.status] += 1
        reasons.setdefault(trial.status, trial.reason)
        if trial.status in ("PASS", "FAIL"):
            judged.append(trial)
    costs = [trial.cost_usd for trial in judged if trial.cost_usd is not None]
    return CaseTally(
        passed=counts["PASS"],
        failed=counts["FAIL"],
        errors=counts["ERROR"],
        skipped=counts["SKIP"],
        not_held=counts["NOT_HELD"],
        score=fmean(trial.score for trial in judged) if judged else None,
        cost_usd=fmean(costs) if costs else None,
        duration_ms=fmean(trial.duration_ms for trial in judged) if judged else None,
        reason=next(
            (reasons[s] for s in ("FAIL", "ERROR", "SKIP", "NOT_HELD") if s in reasons), ""
        ),
        priced=len(costs),
    )


def together(tallies: Iterable[CaseTally]) -> CaseTally:
    """Several as one, of a case's runs or a suite's cases; each trial counts the same in means."""
    summed = list(tallies)

    def mean(values: Iterable[tuple[float | None, int]]) -> float | None:
        told = [(value, trials) for value, trials in values if value is not None and trials]
        count = sum(trials for _, trials in told)
        return sum(value * trials for value, trials in told) / count if count else None

    return CaseTally(
        passed=sum(own.passed for own in summed),
        failed=sum(own.failed for own in summed),
        errors=sum(own.errors for own in summed),
        skipped=sum(own.skipped for own in summed),
        not_held=sum(own.not_held for own in summed),
        score=mean((own.score, own.judged) for own in summed),
        cost_usd=mean((own.cost_usd, own.priced) for own in summed),
        duration_ms=mean((own.duration_ms, own.judged) for own in summed),
        reason=next((own.reason for own in summed if own.reason), ""),
        priced=sum(own.priced for own in summed),
    )


def by_case(trials: Iterable[TrialOutcome]) -> dict[CaseKey, CaseTally]:
    """The tally of each case, in the order in which cases first come."""
    groups: dict[CaseKey, list[TrialOutcome]] = {}
    for trial in trials:
        groups.setdefault(trial.key, []).append(trial)
    return {key: tally(group) for key, group in groups.items()}
