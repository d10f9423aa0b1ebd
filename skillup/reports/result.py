"""`result.json`: every grade, and the counts over them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from skillup.schema.grade import BASELINE, Counts, Grade, Judging, RunResult, Stop, Summary
from skillup.schema.record import Usage, joined


@dataclass(frozen=True, slots=True)
class Ending:
    stop: Stop | None = None  # What kept more trials from being started, if something did
    not_needed: frozenset[str] = frozenset()  # Jobs that `--until-decided` saved
    warnings: tuple[str, ...] = ()


def build_result(
    run_id: str,
    started_at: str,
    grades: Mapping[str, Grade],
    planned: Sequence[str],
    duration_ms: int,
    ending: Ending | None = None,
) -> RunResult:
    """The result of a run: `grades` by job id, in the order of `planned` (all job ids).

    What stopped the run is in it only if trials were not run for it.
    """
    ending = ending or Ending()
    ordered = [grades[job] for job in planned if job in grades]
    without = [job for job in planned if job not in grades]
    not_run = [job for job in without if job not in ending.not_needed]
    return RunResult(
        run_id=run_id,
        started_at=started_at,
        finished=not not_run,
        summary=summarize(ordered, duration_ms),
        cases=ordered,
        not_run=not_run,
        stopped=ending.stop if not_run else None,
        not_needed=[job for job in without if job in ending.not_needed],
        warnings=list(ending.warnings),
    )


def summarize(grades: Sequence[Grade], duration_ms: int) -> Summary:
    """Counts and sums over `grades`, of a run that took so long."""
    totals = GradeTotals()
    for grade in grades:
        totals.add(grade)
    return totals.summary(duration_ms, joined(*(grade.judging for grade in grades)))


@dataclass(slots=True)
class GradeTotals:
    """Counts and sums over grades as they come: nothing grows with their number.

    A trial without the skill that fails is no failure of the skill: those are counted apart.
    """

    with_skill: Counter[str] = field(default_factory=Counter)  # By status
    baseline: Counter[str] = field(default_factory=Counter)
    duration_ms: int = 0  # Of all trials together
    cost_usd: float | None = None
    usage: dict[str, int | None] = field(default_factory=lambda: dict.fromkeys(Usage.model_fields))

    def add(self, grade: Grade) -> None:
        counts = self.baseline if grade.variant == BASELINE else self.with_skill
        counts[grade.status] += 1
        self.duration_ms += grade.duration_ms
        if grade.cost_usd is not None:
            self.cost_usd = (self.cost_usd or 0) + grade.cost_usd
        for name, count in (grade.usage or {}).items():
            if name in self.usage and count is not None:
                self.usage[name] = (self.usage[name] or 0) + count

    def summary(self, duration_ms: int | None = None, judging: Judging | None = None) -> Summary:
        """As in `result.json`; the duration is that of all trials together if none is given."""
        return Summary(
            **_counts(self.with_skill).model_dump(),
            baseline=_counts(self.baseline) if self.baseline else None,
            duration_ms=self.duration_ms if duration_ms is None else duration_ms,
            cost_usd=self.cost_usd,
            usage=dict(self.usage),
            judging=judging,
        )


def _counts(counts: Counter[str]) -> Counts:
    """The pass rate is over verdicts only: errors and skips are none."""
    judged = counts["PASS"] + counts["FAIL"]
    return Counts(
        total=counts.total(),
        passed=counts["PASS"],
        fail=counts["FAIL"],
        error=counts["ERROR"],
        skip=counts["SKIP"],
        pass_rate=round(counts["PASS"] / judged, 6) if judged else None,
    )
