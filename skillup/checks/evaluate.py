"""Asking a check: where it looks, whether it may, what it finds; a result in every case."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

from skillup.checks.context import CheckContext, Subject
from skillup.checks.describe import describe, expected
from skillup.checks.finding import CannotEvaluateError, Finding, broken, not_assertable
from skillup.checks.registry import ASKING, COMBINING, LOOKING, NAMES_ITS_TURN
from skillup.checks.scope import Scope, resolve
from skillup.schema.checks import CHECK_FIELDS, Check, CheckSet
from skillup.schema.grade import CheckResult

Role = Literal["assertion", "post_condition", "expect", "success", "failure"]

_NO_JUDGE = "needs a judge that this version does not run"
_FOLLOW_UP = "a follow-up is no check of its own: its checks are asked of the turn it makes"


@dataclass(frozen=True, slots=True)
class _Manner:
    """What a compound check hands down to its children."""

    role: Role = "assertion"
    case_sensitive: bool = False


def evaluate(check: Check, context: CheckContext) -> CheckResult:
    """Ask `check` of the context's turn, or of the conversation. Never raises for what is found."""
    return _evaluate(check, context, _Manner())


def evaluate_set(checks: CheckSet, context: CheckContext, *, role: Role) -> list[CheckResult]:
    """One result for each key that is given, in the order of the schema."""
    manner = _Manner(role, checks.case_sensitive)
    return [
        _evaluate(
            Check.model_construct({CHECK_FIELDS[key]}, **{CHECK_FIELDS[key]: spec}), context, manner
        )
        for key, spec in checks.given()
    ]


def _evaluate(check: Check, context: CheckContext, manner: _Manner) -> CheckResult:
    key, spec = check.key, check.spec
    number = spec.turn if key in NAMES_ITS_TURN else check.turn
    scope = resolve(context, number)
    if "case_sensitive" in check.model_fields_set:
        manner = replace(manner, case_sensitive=check.case_sensitive)
    if key in COMBINING:
        finding = _combine(key, spec, context, scope, manner)
    elif scope.problem is not None:
        finding = not_assertable(scope.problem)
    elif key in ASKING:
        if context.ask is not None:
            asked = context.ask(check, replace(context, turn=scope.turn))
            return asked.model_copy(update={"role": manner.role})
        finding = broken(_NO_JUDGE)
    elif key in LOOKING:
        finding = _look(key, spec, context, scope, manner)
    else:
        finding = broken(_FOLLOW_UP)
    return _result(check, key, spec, finding, scope, manner)


def _look(key: str, spec: Any, context: CheckContext, scope: Scope, manner: _Manner) -> Finding:
    subject = Subject(context.record, scope.turns, context.read_file, manner.case_sensitive)
    try:
        return LOOKING[key](spec, subject)
    except CannotEvaluateError as trouble:
        return broken(str(trouble))


def _combine(
    key: str, spec: list[Check], context: CheckContext, scope: Scope, manner: _Manner
) -> Finding:
    # Of a conversation that cannot be asked as a whole, single turns still can: so each child is
    # left to look at its own scope. A turn has no parts.
    if scope.problem is not None and scope.label != "conversation":
        return not_assertable(scope.problem)
    below = replace(context, turn=scope.turn)
    return COMBINING[key]([_evaluate(child, below, manner) for child in spec])


def _result(
    check: Check, key: str, spec: Any, finding: Finding, scope: Scope, manner: _Manner
) -> CheckResult:
    passed = finding.passed and finding.assertable and finding.error is None
    score = finding.score if finding.score is not None else float(passed)
    return CheckResult(
        name=check.name or describe(check),
        kind=key,
        passed=passed,
        score=score,
        weight=check.weight,
        required=check.required,
        assertable=finding.assertable,
        scope=scope.label,
        role=manner.role,
        expected=expected(key, spec),
        found=finding.found,
        excerpt=finding.excerpt,
        error=finding.error,
        children=list(finding.children),
    )
