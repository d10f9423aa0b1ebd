"""Two runs beside each other, as JSON: `skillup compare --json`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from skillup.reports.compare_sentence import in_a_sentence
from skillup.trends.changes import CaseChange
from skillup.trends.comparison import Comparison, Means
from skillup.trends.gates import GateResult
from skillup.trends.outcomes import RunOutcomes
from skillup.trends.statistics.exact import ExactTest
from skillup.trends.tallies import Tally

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


def tally_json(own: Tally) -> dict[str, Any]:
    """One case in one run."""
    return {"state": own.state, **asdict(own)}


def _means(means: Means | None) -> dict[str, Any] | None:
    return None if means is None else {**asdict(means), "increase": means.increase}
