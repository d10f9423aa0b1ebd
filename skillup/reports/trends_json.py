"""How cases fared over runs, as JSON: `skillup trends --json`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from skillup.reports.compare_json import tally_json
from skillup.trends.history import CaseHistory, SuiteHistory

TRENDS_VERSION = "skillup.trends/1"


def trends_json(suites: Sequence[SuiteHistory]) -> str:
    """Every suite with its cases as JSON text; what is not known is null."""
    data = {"schema_version": TRENDS_VERSION, "suites": [_suite(suite) for suite in suites]}
    return json.dumps(data, ensure_ascii=False, indent=2) + "\n"


def _suite(suite: SuiteHistory) -> dict[str, Any]:
    return {
        "suite": suite.suite,
        "runs": [
            {**run._asdict(), "state": state}
            for run, state in zip(suite.runs, suite.states(), strict=True)
        ],
        "cases": [_case(suite, case) for case in suite.cases],
    }


def _case(suite: SuiteHistory, case: CaseHistory) -> dict[str, Any]:
    failing, fell = case.failing, case.fell
    return {
        **case.key._asdict(),
        "passed": case.passed,
        "judged": case.judged,
        "pass_rate": case.passed / case.judged if case.judged else None,
        "interval": case.interval,
        **{name: case.mean(name) for name in ("score", "cost_usd", "duration_ms")},
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
