"""What the sequential test of `--until-decided` came to, case by case."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from skillup.executors.deciding import threshold_of
from skillup.executors.sequential import ERROR_RATE, decide
from skillup.schema.analysis import Decision
from skillup.trends.analysis.observation import Observation
from skillup.trends.outcomes import CaseKey


def decision_of(
    key: CaseKey, trials: Sequence[Observation], saved: int, run_info: Mapping[str, Any]
) -> Decision | None:
    """The decision on a case; None: the run did not ask for any, or there is no verdict.

    Also None where suites of the same name have a case of the same id: grades do not tell them
    apart, and the run decided each by itself.
    """
    request = run_info.get("request") or {}
    if len({trial.trial for trial in trials}) < len(trials):
        return None
    # As in the run: up to the first trial that is missing, since what is slow is missing first.
    unbroken = [trial for number, trial in enumerate(trials, start=1) if trial.trial == number]
    verdicts = [trial.passed for trial in unbroken if trial.is_verdict]
    if not request.get("until_decided") or not verdicts:
        return None
    threshold = threshold_of(key.suite, run_info)
    verdict = decide(verdicts, threshold, ERROR_RATE)
    return Decision(
        verdict=verdict.side,
        threshold=threshold,
        error_rate=ERROR_RATE,
        trials=verdict.trials,
        saved=saved,
    )
