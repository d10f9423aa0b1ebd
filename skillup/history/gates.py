"""The gates of a suite: what a run has to meet, compared with an earlier one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from pydantic import ValidationError

from skillup.errors import UsageError
from skillup.history.comparison import (
    DEFAULT_CONFIDENCE,
    CaseChange,
    Comparison,
    Means,
    means,
    suites_of,
)
from skillup.history.runs import RunOutcomes
from skillup.schema.suite import Gates
from skillup.stats.proportions import percent


@dataclass(frozen=True, slots=True)
class GateResult:
    suite: str
    gate: str  # The key: `max_new_failures`, …
    limit: float
    found: float | None  # None: not known, and then the gate fails
    met: bool
    said: str  # What was found, in words


def given_gates(rules: Sequence[str]) -> dict[str, Any]:
    """`--gate NAME=VALUE` → the values by name. Raises UsageError for anything else."""
    values: dict[str, Any] = {}
    for rule in rules:
        name, separator, value = rule.partition("=")
        names = ", ".join(Gates.model_fields)
        if not separator or name not in Gates.model_fields:
            raise UsageError(f"--gate {rule}: not NAME=VALUE", hint=f"the names are: {names}")
        try:
            values[name] = float(value) if "." in value or "e" in value.lower() else int(value)
            Gates.model_validate({name: values[name]})
        except ValueError as error:
            what = error.errors()[0]["msg"] if isinstance(error, ValidationError) else "no number"
            raise UsageError(f"--gate {rule}: {what}") from None
    return values


def gates_by_suite(run: RunOutcomes, given: Mapping[str, Any]) -> dict[str, Gates]:
    """The gates of each suite of `run`: as recorded when it was run, under `given`."""
    suites = {trial.key.suite for trial in run.trials} | set(run.gates)
    return {
        suite: Gates.model_validate({**run.gates.get(suite, {}), **given})
        for suite in sorted(suites)
    }


def confidence_of(gates: Mapping[str, Gates]) -> float:
    """How sure differences must be: what the strictest of the suites says; 0.95 if none does."""
    said = [own.confidence for own in gates.values() if own.confidence is not None]
    return max(said, default=DEFAULT_CONFIDENCE)


def check_gates(comparison: Comparison, gates: Mapping[str, Gates]) -> list[GateResult]:
    results = []
    for suite in suites_of(comparison.counted):
        cases = [case for case in comparison.counted if case.key.suite == suite]
        if suite in gates and any(case.b.state != "absent" for case in cases):
            results.extend(_of_suite(suite, cases, gates[suite]))
    return results


def _of_suite(suite: str, cases: list[CaseChange], gates: Gates) -> list[GateResult]:
    new = [case for case in cases if case.change == "newly_failing"]
    sure = sum(case.sure for case in new)
    missing = sum(not case.b.judged and case.b.not_run > 0 for case in cases)
    failing = f"{len(new)} newly failing" + (f", {sure} of them surely" if sure else "")
    # Each case counts the same: with `--until-decided`, good ones have far more trials.
    rates = [rate for case in cases if (rate := case.b.rate) is not None]
    cost = means(cases, lambda tally: tally.cost_usd)
    found: dict[str, tuple[float | None, str]] = {
        "max_new_failures": (len(new), failing + (f"; {missing} not run" if missing else "")),
        "min_pass_rate": _pass_rate(rates, gates.min_pass_rate or 0.0),
        "max_cost_increase": _cost(cost, gates.max_cost_increase or 0.0),
        "max_not_run": (missing, f"{missing} without a verdict, for an error or the run's end"),
    }
    results = []
    for gate, (value, said) in found.items():
        limit: float | None = getattr(gates, gate)
        if limit is not None:
            above = value is not None and value >= limit - 1e-9
            below = value is not None and value <= limit + 1e-9
            met = above if gate.startswith("min_") else below
            results.append(GateResult(suite, gate, limit, value, met, said))
    return results


def _pass_rate(rates: Sequence[float], limit: float) -> tuple[float | None, str]:
    if not rates:
        return None, "no verdict in B"
    mean = f", the mean of {len(rates)} cases" if rates[1:] else ""
    return fmean(rates), f"{_beside(fmean(rates), limit, percent)} passed{mean}"


def _cost(cost: Means | None, limit: float) -> tuple[float | None, str]:
    if cost is None:
        return None, "the cost of no case is known in both runs"
    if cost.increase is None:
        return None, "A cost nothing, B does"
    return cost.increase, f"{_beside(cost.increase, limit, '{:+.{}%}'.format)} a trial"


def _beside(found: float, limit: float, show: Callable[[float, int], str]) -> str:
    """`found` with as many digits as tell it from its limit."""
    digits = 1
    while digits < 4 and abs(found - limit) > 1e-9 and show(found, digits) == show(limit, digits):
        digits += 1
    return show(found, digits)
