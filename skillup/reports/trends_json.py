"""How cases fared over runs, as JSON: `skillup trends --json`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from skillup.reports.compare_json import tally_json
from skillup.trends.history import CaseHistory, SuiteHistory
from skillup.trends.statistics.proportions import Interval
from skillup.trends.tallies import Tally

TRENDS_VERSION = "skillup.trends/1"


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
        "cases": [_case(suite, case) for case in suite.cases],
    }


def _numbers(total: Tally, interval: Interval | None) -> dict[str, Any]:
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


def _case(suite: SuiteHistory, case: CaseHistory) -> dict[str, Any]:
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
