"""`result.json`: every grade, and the counts over them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from skillup.schema.grade import BASELINE, Counts, Grade, Judging, RunResult, Stop, Summary
from skillup.schema.record import joined

_STATUSES = ("PASS", "FAIL", "ERROR", "SKIP")
_USAGE = (
    "input_tokens",
    "cached_input_tokens",
    "cache_write_tokens",
    "output_tokens",
    "reasoning_tokens",
    "requests",
)


@dataclass(frozen=True, slots=True)
class Ending:
    """Why trials did not run."""

    stop: Stop | None = None
    """What kept more trials from being started, if something did."""
    not_needed: frozenset[str] = frozenset()
    """Jobs that `--until-decided` saved."""
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
    """Counts and sums. The pass rate is over verdicts only: errors and skips are none.

    A trial without the skill that fails is no failure of the skill: those are counted apart.
    """
    counts = {is_bare: dict.fromkeys(_STATUSES, 0) for is_bare in (False, True)}
    for grade in grades:
        counts[grade.variant == BASELINE][grade.status] += 1
    costs = [grade.cost_usd for grade in grades if grade.cost_usd is not None]
    usage = {}
    for name in _USAGE:
        known = [n for grade in grades if (n := (grade.usage or {}).get(name)) is not None]
        usage[name] = sum(known) if known else None
    return summary_of(
        counts[False],
        counts[True],
        duration_ms=duration_ms,
        cost_usd=sum(costs) if costs else None,
        usage=usage,
        judging=joined(*(grade.judging for grade in grades)),
    )


def summary_of(
    counts: Mapping[str, int],
    without: Mapping[str, int],
    *,
    duration_ms: int,
    cost_usd: float | None,
    usage: Mapping[str, int | None],
    judging: Judging | None = None,
) -> Summary:
    """The summary of trials with and `without` the skill, each counted by status."""
    apart = _counts(without)
    return Summary(
        **_counts(counts).model_dump(),
        baseline=apart if apart.total else None,
        duration_ms=duration_ms,
        cost_usd=cost_usd,
        usage=dict(usage),
        judging=judging,
    )


def _counts(counts: Mapping[str, int]) -> Counts:
    judged = counts["PASS"] + counts["FAIL"]
    return Counts(
        total=sum(counts[status] for status in _STATUSES),
        passed=counts["PASS"],
        fail=counts["FAIL"],
        error=counts["ERROR"],
        skip=counts["SKIP"],
        pass_rate=round(counts["PASS"] / judged, 6) if judged else None,
    )
