"""The deterministic checks: pure functions of the record, with evidence for what they say.

evaluate(check, context) -> CheckResult
evaluate_set(checks, context, role=...) -> one CheckResult for each key that is given
describe(check) -> the check in one line
pattern_problem, capture_problem, jsonpath_problem, path_problem    what validation asks
"""

from __future__ import annotations

from skillup.checks.capture import Captured, CaptureMiss, capture, capture_problem
from skillup.checks.context import CheckContext
from skillup.checks.describe import describe
from skillup.checks.evaluate import evaluate, evaluate_set
from skillup.checks.jsonpath import jsonpath_problem
from skillup.checks.paths import path_problem
from skillup.checks.patterns import pattern_problem

__all__ = [
    "CaptureMiss",
    "Captured",
    "CheckContext",
    "capture",
    "capture_problem",
    "describe",
    "evaluate",
    "evaluate_set",
    "jsonpath_problem",
    "path_problem",
    "pattern_problem",
]
