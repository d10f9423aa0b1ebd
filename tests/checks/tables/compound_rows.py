"""Checks made of checks, and checks that need a judge."""

from __future__ import annotations

from skillup.checks.context import CheckContext
from skillup.schema.checks import Check
from skillup.schema.grade import CheckResult, CheckRole
from tests.support.check_rows import Row, row
from tests.support.records import make_record, make_turn

TWO = make_record("yes, sure", "gone")
STOPPED = make_record("yes, sure", make_turn("gone", status="skipped"))


def approve(check: Check, context: CheckContext, role: CheckRole) -> CheckResult:
    """A judge that likes everything."""
    return CheckResult(name=check.key, kind=check.key, passed=True, score=1.0)


def refuse(check: Check, context: CheckContext, role: CheckRole) -> CheckResult:
    """A judge that likes nothing."""
    return CheckResult(name=check.key, kind=check.key, passed=False, score=0.2)


def _has(text: str, **beside: object) -> dict[str, object]:
    return {"contains": text, **beside}


def _judged(key: str, spec: object) -> list[Row]:
    return [
        row(True, key, spec, TWO, turn=1, ask=approve),
        row(True, key, spec, TWO, turn=None, ask=approve),
        row(True, key, spec, STOPPED, turn=1, ask=approve),
        row(False, key, spec, TWO, turn=1, ask=refuse),
        row(False, key, spec, TWO, turn=1),
        row(False, key, spec, STOPPED, turn=2, ask=approve),
        row(False, key, spec, STOPPED, turn=None, ask=approve),
    ]


ROWS = [
    *_judged("script", "judges/check.py"),
    *_judged("rubric", "Is polite"),
    *_judged("similar", {"to": "yes", "threshold": 0.7}),
    *_judged("expected_output", "yes"),
    *_judged("answer_quality", 0.7),
    *_judged("relevance", {"window_size": 2}),
    row(True, "any_of", [_has("x"), {"none_of": [_has("y!")]}], TWO),
    row(True, "any_of", [_has("gone"), _has("sure", turn=1)], TWO, turn=None),
    row(False, "any_of", [_has("YES")], TWO, case_sensitive=True),
    row(False, "any_of", [_has("gone", turn=2), {"not_contains": "x", "turn": 2}], STOPPED),
    row(True, "all_of", [_has("yes", turn=1), _has("gone", turn=2)], TWO, turn=None),
    row(True, "all_of", [_has("yes", turn=1)], STOPPED, turn=None),
    row(False, "all_of", [_has("yes", turn=1), _has("gone", turn=2)], STOPPED, turn=None),
    row(False, "all_of", [_has("yes"), _has("x", weight=0.0)], TWO),
    row(True, "none_of", [_has("gone"), {"all_of": [_has("yes"), _has("x")]}], TWO),
    row(True, "none_of", [_has("YES", case_sensitive=True)], TWO),
    row(False, "none_of", [_has("x", turn=2)], STOPPED, turn=None),
    row(False, "none_of", [_has("x"), {"rubric": "needs a judge"}], TWO),
    row(False, "none_of", [{"max_cost_usd": 1.0}], TWO),
    row(False, "none_of", [{"all_of": [_has("x"), _has("x", turn=2)]}], STOPPED, turn=1),
]
