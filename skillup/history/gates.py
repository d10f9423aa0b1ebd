"""What a run has to meet: the gates of its suites, and those that are given."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import attrgetter
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from skillup.dataclass import frozen
from skillup.errors import UsageError
from skillup.history.comparison import CaseChange, Comparison, Quantity, typical_increase
from skillup.history.reference import reference_for
from skillup.history.regressions import CONFIDENCE, Kind
from skillup.history.runs import WITH_SKILL, CaseKey, RunOutcomes, mean_known
from skillup.schema.suite import CaseGates, Gates
from skillup.stats import percent


@frozen
class GateResult:
    suite: str
    gate: str  # The key: `max_new_failures`, `per_case.max_errors`, …
    limit: float
    found: float | None  # None: not known, and then the gate fails
    passed: bool
    finding: str  # What was found, in words
    cases: tuple[CaseKey, ...] = ()
    """Those for which it failed."""


_NAMES = [name for name in Gates.model_fields if name != "per_case"]
_OF_CASES = [f"per_case.{name}" for name in CaseGates.model_fields]


def given_gates(rules: Sequence[str]) -> dict[str, Any]:
    """`--gate NAME=VALUE` → the values as in a suite. Raises UsageError for anything else."""
    values: dict[str, Any] = {}
    for rule in rules:
        name, separator, text = rule.partition("=")
        if not separator or name not in (*_NAMES, *_OF_CASES):
            names = ", ".join([*_NAMES, *_OF_CASES])
            raise UsageError(f"--gate {rule}: not NAME=VALUE", hint=f"the names are: {names}")
        own = values.setdefault("per_case", {}) if name in _OF_CASES else values
        try:
            value = None if text == "null" else float(text) if set(text) & set(".eE") else int(text)
            own[name.rpartition(".")[2]] = value
            Gates.model_validate(values)
        except ValueError as error:
            what = error.errors()[0]["msg"] if isinstance(error, ValidationError) else "no number"
            raise UsageError(f"--gate {rule}: {what}") from None
    return values


def gates_by_suite(run: RunOutcomes, given: Mapping[str, Any]) -> dict[str, Gates]:
    """The gates of each suite of `run`: as recorded when it was run, under `given`."""
    found = {}
    for suite in sorted({trial.key.suite for trial in run.trials} | set(run.gates)):
        own = run.gates.get(suite, {})
        per_case = {**own.get("per_case", {}), **given.get("per_case", {})}
        found[suite] = Gates.model_validate({**own, **given, "per_case": per_case})
    return found


def compared(
    b: RunOutcomes,
    url: str,
    runs_folder: Path = Path(),
    *,
    baseline: str | None = None,
    branch: str | None = None,
    given: Mapping[str, Any] | None = None,
) -> tuple[Comparison, list[GateResult]]:
    """`b` beside its reference in the index at `url`, or beside the run `baseline` (that may be in
    `runs_folder`); and its gates.

    Raises UsageError, RunDirectoryError, IndexTroubleError.
    """
    reference = reference_for(b, url, runs_folder, baseline=baseline, branch=branch)
    gates = gates_by_suite(b, given or {})
    # Of several suites, the strictest one's.
    confidence = max((own.confidence for own in gates.values()), default=CONFIDENCE)
    comparison = Comparison(reference, b, confidence)
    return comparison, check_gates(comparison, gates)


def check_gates(comparison: Comparison, gates: Mapping[str, Gates]) -> list[GateResult]:
    """Those of each suite that B ran; cases in quarantine count for none.

    Without a reference, those alone that need none. Whatever the gates, a night fails in which no
    case passed (of a suite without a past: none of its cases), or most cases of a suite are gone.
    """
    ran = [case for case in comparison.cases if case.b.state != "absent" and not case.quarantined]
    results = [
        result
        for suite, own in gates.items()
        if (cases := [case for case in ran if case.key.suite == suite])
        for result in _of_suite(suite, comparison, cases, own)
    ]
    own = [case for case in ran if case.key in comparison.counted_keys]
    new = {case.key.suite for case in own} - {case.key.suite for case in own if case.a.trials}
    for suite in ("", *sorted(new)):
        some = [case for case in own if suite in ("", case.key.suite)]
        if some and not any(case.b.passed for case in some):
            results.insert(0, GateResult(suite, "min_passes", 1, 0, False, "no case passed"))
            break
    return [*(result for result, _ in cases_gone(comparison)), *results]


def cases_gone(comparison: Comparison) -> Iterator[tuple[GateResult, set[CaseKey]]]:
    """Suites on an engine of which most cases are gone that a night had, asked for the same; and
    these cases. What somebody accepted is only looked for in the nights since.
    """
    runs, accepted = [*comparison.nights, comparison.b], comparison.reference.accepted
    places = {run.run_id: place for place, run in enumerate(runs)}
    most: dict[tuple[str, str], set[CaseKey]] = {}
    for place, run in enumerate(runs):
        own: dict[tuple[str, str], set[CaseKey]] = {}
        for key in {trial.key for trial in run.trials if trial.key.variant == WITH_SKILL}:
            if places.get(accepted.get(key, ""), 0) <= place:
                own.setdefault((key.suite, key.engine), set()).add(key)
        if run.selection_key == comparison.b.selection_key != "":
            most |= {of: cases for of, cases in own.items() if len(cases) >= len(most.get(of, ()))}
    for (suite, engine), cases in most.items():
        gone, least = cases - {trial.key for trial in comparison.b.trials}, (len(cases) + 1) // 2
        if len(cases) - len(gone) < least:
            some = ", ".join(sorted(key.case_id for key in gone)[:5])
            words = f"{len(gone)} of {len(cases)} cases on {engine} are gone: {some}"
            words += " …" if len(gone) > 5 else ""
            yield GateResult(suite, "min_cases", least, len(cases) - len(gone), False, words), gone


def _of_suite(
    suite: str, comparison: Comparison, cases: Sequence[CaseChange], gates: Gates
) -> list[GateResult]:
    found: list[GateResult] = []

    def check(
        gate: str, value: float | None, words: str, failing: Iterable[CaseChange] = ()
    ) -> None:
        limit = attrgetter(gate)(gates)
        if limit is not None:
            over = None if value is None else value - limit
            over = -over if over is not None and gate.startswith("min_") else over
            passed = over is not None and over <= 1e-9
            keys = () if passed else tuple(case.key for case in failing)
            found.append(GateResult(suite, gate, limit, value, passed, words, keys))

    counted = [case for case in cases if case.key in comparison.counted_keys]
    if comparison.nights:
        red = [case for case in counted if case.change == "regressed"]
        check("max_new_failures", len(red), f"{len(red)} regressed", red)
        of_suite = [one for one in comparison.of_suites if one.suite == suite]
        falls = [o.before.value - o.after.value for o in of_suite if o.kind == "fewer_passes"]
        fall = max(falls, default=0.0)
        words = f"{100 * fall:.1f} points over all cases" if fall else "no significant fall"
        check("max_fall", fall, words)
        for what, quantity, kind in _INCREASES:
            more = typical_increase(counted, quantity)
            words = "no case tells it in both"
            words = words if more is None else f"{more:+.1%} for the median case"
            check(f"max_{what}_increase", more, words)
            said = {case: one for case in counted if (one := case.said(kind)) and one.significant}
            most = max((one.increase or 0.0 for one in said.values()), default=0.0)
            check(f"per_case.max_{what}_increase", most, f"{len(said)} significantly {kind}", said)
    errors = {case: case.b.errors for case in cases}
    # That a case is skipped which had verdicts before says no more of it than if it was not run.
    missing = {
        case: case.b.not_started + (case.b.skipped if case.a.judged and not case.b.judged else 0)
        for case in cases
    }
    for gate, own, words in (
        ("max_errors", errors, "trials with an ERROR"),
        ("max_not_run", missing, "trials not run"),
    ):
        number = sum(own.values())
        check(gate, number, f"{number} {words}", [case for case, many in own.items() if many])
    rate = mean_known(case.b.rate for case in counted)
    check("min_pass_rate", rate, "no verdict" if rate is None else f"{percent(rate, 2)} passed")
    worst = max(errors.values())
    beyond = [case for case, many in errors.items() if many > (gates.per_case.max_errors or 0)]
    check("per_case.max_errors", worst, f"{worst} trials with an ERROR in a case", beyond)
    return found


_INCREASES: tuple[tuple[str, Quantity, Kind], ...] = (
    ("time", "duration_ms", "slower"),
    ("cost", "cost_usd", "dearer"),
)
"""Of the median case; and of the worst of those where that is significant."""
