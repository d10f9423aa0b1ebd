"""The gates of a suite: what a run has to meet, compared with an earlier one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from statistics import fmean
from typing import Any

from pydantic import ValidationError

from skillup.errors import UsageError
from skillup.frozen import frozen
from skillup.history.comparison import DEFAULT_CONFIDENCE, CaseChange, Comparison, means
from skillup.history.runs import RunOutcomes
from skillup.schema.suite import Gates
from skillup.stats.intervals import percent


@frozen
class GateResult:
    suite: str
    gate: str  # The key: `max_new_failures`, …
    limit: float
    found: float | None  # None: not known, and then the gate fails
    passed: bool
    finding: str  # What was found, in words


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
    asked = [own.confidence for own in gates.values() if own.confidence is not None]
    return max(asked, default=DEFAULT_CONFIDENCE)


def check_gates(comparison: Comparison, gates: Mapping[str, Gates]) -> list[GateResult]:
    results = []
    for suite in dict.fromkeys(case.key.suite for case in comparison.counted):
        cases = [case for case in comparison.counted if case.key.suite == suite]
        if suite in gates and any(case.b.state != "absent" for case in cases):
            for gate, (value, finding) in _findings(cases, gates[suite]).items():
                limit: float | None = getattr(gates[suite], gate)
                if limit is not None:
                    over = None if value is None else value - limit
                    over = -over if over is not None and gate.startswith("min_") else over
                    passed = over is not None and over <= 1e-9
                    results.append(GateResult(suite, gate, limit, value, passed, finding))
    return results


def _findings(cases: list[CaseChange], gates: Gates) -> dict[str, tuple[float | None, str]]:
    """By gate, the value (None: not known) and what was found, in words."""
    new = [case for case in cases if case.change == "newly_failing"]
    sure = sum(case.sure for case in new)
    missing = sum(not case.b.judged and case.b.not_run > 0 for case in cases)
    failing = f"{len(new)} newly failing" + (f", {sure} of them surely" if sure else "")
    # Each case counts the same: with `--until-decided`, good ones have far more trials.
    rates = [rate for case in cases if (rate := case.b.rate) is not None]
    rate, passed = fmean(rates) if rates else None, "no verdict in B"
    if rate is not None:
        of = f", the mean of {len(rates)} cases" if rates[1:] else ""
        passed = f"{_beside(rate, gates.min_pass_rate or 0.0, percent)} passed{of}"
    cost = means(cases, lambda tally: tally.cost_usd)
    more = None if cost is None else cost.increase
    took = "the cost of no case is known in both runs" if cost is None else "A cost nothing, B does"
    if more is not None:
        took = _beside(more, gates.max_cost_increase or 0.0, "{:+.{}%}".format) + " a trial"
    return {
        "max_new_failures": (len(new), failing + (f"; {missing} not run" if missing else "")),
        "min_pass_rate": (rate, passed),
        "max_cost_increase": (more, took),
        "max_not_run": (missing, f"{missing} without a verdict, for an error or the run's end"),
    }


def _beside(found: float, limit: float, show: Callable[[float, int], str]) -> str:
    """`found` with as many digits as tell it from its limit."""
    digits = 1
    while digits < 4 and abs(found - limit) > 1e-9 and show(found, digits) == show(limit, digits):
        digits += 1
    return show(found, digits)
