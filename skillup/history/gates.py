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
    means,
    suites_of,
)
from skillup.history.runs import RunOutcomes
from skillup.schema.suite import Gates
from skillup.stats.proportions import percent


@dataclass(frozen=True, slots=True)
class GateResult:
    """One gate of one suite."""

    suite: str
    gate: str
    """The key: `max_new_failures`, …"""
    limit: float
    found: float | None
    """None: it cannot be told, and then the gate is not met."""
    met: bool
    said: str
    """What was found, in words."""


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
    """The gates that hold for each suite of `run`: as recorded when it was held, under `given`.

    Raises UsageError if the recorded ones are of another version.
    """
    suites = {trial.key.suite for trial in run.trials} | set(run.gates)
    found = {}
    for suite in sorted(suites):
        try:
            found[suite] = Gates.model_validate({**run.gates.get(suite, {}), **given})
        except ValidationError:
            raise UsageError(
                f"this skillup cannot read the gates that {run.run_id} recorded for {suite}",
                hint="compare with the version of skillup that held the run",
            ) from None
    return found


def confidence_of(gates: Mapping[str, Gates]) -> float:
    """How sure differences must be: what the strictest of the suites says; 0.95 if none does."""
    said = [own.confidence for own in gates.values() if own.confidence is not None]
    return max(said, default=DEFAULT_CONFIDENCE)


def check_gates(comparison: Comparison, gates: Mapping[str, Gates]) -> list[GateResult]:
    """Every gate of every suite that B held."""
    results = []
    for suite in suites_of(comparison.counted):
        cases = [case for case in comparison.counted if case.key.suite == suite]
        if suite in gates and any(case.b.state != "absent" for case in cases):
            results.extend(_of_suite(suite, cases, gates[suite]))
    return results


def _of_suite(suite: str, cases: list[CaseChange], gates: Gates) -> list[GateResult]:
    results = []
    missing = sum(not case.b.judged and case.b.not_run > 0 for case in cases)
    if gates.max_new_failures is not None:
        new = [case for case in cases if case.change == "newly_failing"]
        sure = sum(case.sure for case in new)
        said = f"{len(new)} newly failing" + (f", {sure} of them surely" if sure else "")
        said += f"; {missing} not run" if missing else ""
        results.append(_at_most(suite, "max_new_failures", gates.max_new_failures, len(new), said))
    if gates.min_pass_rate is not None:
        results.append(_pass_rate(suite, cases, gates.min_pass_rate))
    if gates.max_cost_increase is not None:
        results.append(_cost(suite, cases, gates.max_cost_increase))
    if gates.max_not_run is not None:
        said = f"{missing} without a verdict, for an error or the run's end"
        results.append(_at_most(suite, "max_not_run", gates.max_not_run, missing, said))
    return results


def _pass_rate(suite: str, cases: list[CaseChange], limit: float) -> GateResult:
    """Each case counts the same: with `--until-decided`, good ones are held far more often."""
    rates = [rate for case in cases if (rate := case.b.rate) is not None]
    rate = fmean(rates) if rates else None
    if rate is None:
        said = "no verdict in B"
    else:
        said = f"{_beside(rate, limit, percent)} passed" + (
            f", the mean of {len(rates)} cases" if rates[1:] else ""
        )
    met = rate is not None and rate >= limit - 1e-9
    return GateResult(suite, "min_pass_rate", limit, rate, met, said)


def _cost(suite: str, cases: list[CaseChange], limit: float) -> GateResult:
    cost = means(cases, lambda tally: tally.cost_usd)
    increase = cost.increase if cost is not None else None
    if cost is None:
        said = "no case tells its cost in both runs"
    elif increase is None:
        said = "A cost nothing, B does"
    else:
        said = f"{_beside(increase, limit, _signed)} a trial"
    met = increase is not None and increase <= limit + 1e-9
    return GateResult(suite, "max_cost_increase", limit, increase, met, said)


def _beside(found: float, limit: float, show: Callable[[float, int], str]) -> str:
    """`found` with as many digits as tell it from its limit."""
    digits = 1
    while digits < 4 and abs(found - limit) > 1e-9 and show(found, digits) == show(limit, digits):
        digits += 1
    return show(found, digits)


def _signed(increase: float, digits: int) -> str:
    return f"{increase:+.{digits}%}"


def _at_most(suite: str, gate: str, limit: float, found: int, said: str) -> GateResult:
    return GateResult(suite, gate, limit, found, found <= limit, said)
