"""The run's pass rate, and how sure it is where cases were held several times."""

from __future__ import annotations

from collections.abc import Iterable

from skillup.schema.analysis import Overall
from skillup.trends.analysis.observation import Observation
from skillup.trends.analysis.reliability import rate_of
from skillup.trends.outcomes import WITH_SKILL
from skillup.trends.statistics.paired import bootstrap_interval, fewer_draws


def overall(trials: Iterable[Observation], confidence: float) -> Overall | None:
    """Of the verdicts with the skill; None: there is none.

    With one verdict for each case the interval is Wilson's. With more, five trials of one case are
    not five cases: the cases' rates are drawn again (bootstrap), and each end is the outer one of
    both, since cases that all came out alike leave nothing to draw. A case on several engines is
    one case.
    """
    cases: dict[tuple[str, str], list[bool]] = {}
    for trial in trials:
        if trial.is_verdict and trial.key.variant == WITH_SKILL:
            cases.setdefault((trial.key.suite, trial.key.case_id), []).append(trial.passed)
    verdicts = [passed for held in cases.values() for passed in held]
    if not verdicts:
        return None
    rate = rate_of(sum(verdicts), len(verdicts), confidence)
    found = Overall(**rate.model_dump(), cases=len(cases))
    rates = [sum(held) / len(held) for held in cases.values()]
    if len(verdicts) == len(cases) or min(rates) == max(rates):
        return found
    drawn = bootstrap_interval(rates, confidence, draws=fewer_draws(len(rates)))
    if drawn is None or found.low is None or found.high is None:
        return found
    return found.model_copy(
        update={"low": min(found.low, drawn.low), "high": max(found.high, drawn.high)}
    )
