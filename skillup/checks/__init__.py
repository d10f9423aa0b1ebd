"""The deterministic checks: pure functions of the record, with evidence for what they say.

evaluate(check, context) -> CheckResult
evaluate_set(checks, context, role=...) -> one CheckResult for each key that is given
describe(check) -> the check in one line
"""

from __future__ import annotations

from skillup.checks.context import CheckContext
from skillup.checks.evaluate import evaluate, evaluate_set
from skillup.checks.registry import describe
from skillup.checks.text import Captured, capture

__all__ = [
    "Captured",
    "CheckContext",
    "capture",
    "describe",
    "evaluate",
    "evaluate_set",
]
