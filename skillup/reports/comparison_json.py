"""Two runs beside each other, as JSON: `skillup compare --json`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from skillup.history.comparison import CaseChange, Comparison, Means
from skillup.history.gates import GateResult
from skillup.history.runs import CaseTally, RunOutcomes
from skillup.history.series import CaseHistory, SuiteHistory
from skillup.reports.comparison_text import in_a_sentence
from skillup.stats.exact import ExactTest
from skillup.stats.proportions import Interval

COMPARISON_VERSION = "skillup.comparison/1"


def comparison_json(comparison: Comparison, gates: Sequence[GateResult]) -> str:
    """The comparison as JSON text; what cannot be told is null."""
    verdicts, scores = comparison.verdicts, comparison.scores
    data = {
        "schema_version": COMPARISON_VERSION,
        "summary": in_a_sentence(comparison),
        "a": _run(comparison.a),
        "b": _run(comparison.b),
        "confidence": comparison.confidence,
        "cases": [_case(case, comparison) for case in comparison.cases],
        "verdicts": {
            "cases": verdicts.cases,
            "worse": verdicts.worse,
            "better": verdicts.better,
            **_test(verdicts.test),
            "test": verdicts.name,
        },
        "scores": None
        if scores is None
        else {
            "cases": scores.cases,
            "mean_a": scores.mean_a,
            "mean_b": scores.mean_b,
            "difference": scores.difference,
            "interval": scores.interval,
            **_test(scores.test),
        },
        "cost_usd": _means(comparison.cost),
        "duration_ms": _means(comparison.duration),
        "edited_cases": [{"suite": suite, "case_id": name} for suite, name in comparison.edited],
        "notes": list(comparison.notes),
        "gates": [asdict(gate) for gate in gates],
        "gates_met": all(gate.met for gate in gates),
    }
    return json.dumps(data, ensure_ascii=False, indent=2) + "\n"


def _test(test: ExactTest | None) -> dict[str, float | None]:
    return {"p": test and test.p, "least_p": test and test.least}


def _run(run: RunOutcomes) -> dict[str, Any]:
    return {
        "run_id": run.run_id,
        "started_at": run.started_at,
        "path": run.path,
        "finished": run.finished,
    }


def _case(case: CaseChange, comparison: Comparison) -> dict[str, Any]:
    return {
        **case.key._asdict(),
        "change": case.change,
        "sure": case.sure,
        "p": case.p,
        "p_corrected": case.p_corrected,
        "a": tally_json(case.a),
        "a_from_run": comparison.earlier.get(case.key),
        "b": tally_json(case.b),
    }


def tally_json(own: CaseTally) -> dict[str, Any]:
    """One case in one run."""
    return {"state": own.state, **asdict(own)}


def _means(means: Means | None) -> dict[str, Any] | None:
    return None if means is None else {**asdict(means), "increase": means.increase}


# How cases fared over runs, as JSON: `skillup trends --json`.

TRENDS_VERSION = "skillup.history/1"


def trends_json(suites: Sequence[SuiteHistory]) -> str:
    """Every suite with its cases as JSON text; what is not known is null."""
    data = {"schema_version": TRENDS_VERSION, "suites": [_suite(suite) for suite in suites]}
    return json.dumps(data, ensure_ascii=False, indent=2) + "\n"


def _suite(suite: SuiteHistory) -> dict[str, Any]:
    return {
        "suite": suite.suite,
        **_numbers(suite.total, suite.interval),
        "runs": [
            {**run._asdict(), "state": state}
            for run, state in zip(suite.runs, suite.states(), strict=True)
        ],
        "cases": [_case_trends_json(suite, case) for case in suite.cases],
    }


def _numbers(total: CaseTally, interval: Interval | None) -> dict[str, Any]:
    """Over the runs shown."""
    return {
        "passed": total.passed,
        "judged": total.judged,
        "pass_rate": total.rate,
        "interval": interval,
        "errors": total.errors,
        "not_held": total.not_held,
        "skipped": total.skipped,
        "score": total.score,
        "cost_usd": total.cost_usd,
        "duration_ms": total.duration_ms,
    }


def _case_trends_json(suite: SuiteHistory, case: CaseHistory) -> dict[str, Any]:
    failing, fell = case.failing, case.fell
    return {
        **case.key._asdict(),
        **_numbers(case.total, case.interval),
        "failing_since": None
        if failing is None
        else {
            "first": failing.first._asdict(),
            "last_pass": failing.last_pass._asdict() if failing.last_pass else None,
            "runs": failing.runs,
            "unknown": failing.unknown,
        },
        "fell_at": None
        if fell is None
        else {
            "first": fell.first._asdict(),
            "before": fell.before._asdict(),
            "since": fell.since._asdict(),
            "runs": fell.runs,
            "p": fell.p,
        },
        "runs": [
            {"run_id": run.run_id, **tally_json(own)}
            for run, own in zip(suite.runs, case.tallies, strict=True)
        ],
    }
