"""`result.json`: every grade, and the counts over them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence

from skillup.schema.grade import BASELINE, Counts, Grade, RunResult, Stop, Summary
from skillup.schema.record import Usage, joined


def build_result(
    run_id: str,
    started_at: str,
    grades: Mapping[str, Grade],
    planned: Sequence[str],
    duration_ms: int,
    stop: Stop | None = None,
    not_needed: Collection[str] = (),
    warnings: Iterable[str] = (),
) -> RunResult:
    """The result of a run: `grades` by job id, in the order of `planned` (all job ids).

    `stop`: what kept more trials from being started, in the result only if it did. `not_needed`:
    jobs that `--until-decided` saved.
    """
    ordered = [grades[job] for job in planned if job in grades]
    without = [job for job in planned if job not in grades]
    saved = frozenset(not_needed)
    not_run = [job for job in without if job not in saved]
    return RunResult(
        run_id=run_id,
        started_at=started_at,
        finished=not not_run,
        summary=summarize(ordered, duration_ms),
        cases=ordered,
        not_run=not_run,
        stopped=stop if not_run else None,
        not_needed=[job for job in without if job in saved],
        warnings=list(warnings),
    )


def summarize(grades: Sequence[Grade], duration_ms: int | None = None) -> Summary:
    """Counts and sums over `grades`, of a run that took so long; None: all trials together.

    A trial without the skill that fails is no failure of the skill: those are counted apart.
    """
    bare = [grade for grade in grades if grade.variant == BASELINE]
    costs = [grade.cost_usd for grade in grades if grade.cost_usd is not None]
    usage = {}
    for name in Usage.model_fields:
        tokens = [count for g in grades if (count := (g.usage or {}).get(name)) is not None]
        usage[name] = sum(tokens) if tokens else None
    if duration_ms is None:
        duration_ms = sum(grade.duration_ms for grade in grades)
    return Summary(
        **_counts([grade for grade in grades if grade.variant != BASELINE]).model_dump(),
        baseline=_counts(bare) if bare else None,
        duration_ms=duration_ms,
        cost_usd=sum(costs) if costs else None,
        usage=usage,
        judging=joined(*(grade.judging for grade in grades)),
    )


def _counts(grades: Sequence[Grade]) -> Counts:
    """The pass rate is over verdicts only: errors and skips are none."""
    counts = Counter(grade.status for grade in grades)
    judged = counts["PASS"] + counts["FAIL"]
    return Counts(
        total=len(grades),
        passed=counts["PASS"],
        fail=counts["FAIL"],
        error=counts["ERROR"],
        skip=counts["SKIP"],
        pass_rate=round(counts["PASS"] / judged, 6) if judged else None,
    )
