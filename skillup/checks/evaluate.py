"""Asking a check: where it looks, whether it may, what it finds; a result in every case."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from skillup.checks.context import CheckContext, Subject
from skillup.checks.describe import expected, key_and_spec, title
from skillup.checks.finding import CannotEvaluateError, Finding, broken, not_assertable
from skillup.checks.registry import ASKING, COMBINING, LOOKING, NAMES_ITS_TURN
from skillup.checks.scope import CONVERSATION, Scope, resolve
from skillup.schema.checks import CHECK_FIELDS, Check, CheckSet
from skillup.schema.grade import CheckResult, CheckRole

_NO_JUDGE = "needs a judge that this version does not run"
_FOLLOW_UP = "a follow-up is no check of its own: its checks are asked of the turn it makes"


@dataclass(frozen=True, slots=True)
class _Question:
    """One key of a check or of a set of checks, and what goes with it."""

    key: str
    spec: Any
    check: Check | None = None
    """None: it stands in a set, where nothing can stand beside a key."""


@dataclass(frozen=True, slots=True)
class _Manner:
    """How it is asked; a compound check hands this down to its children."""

    role: CheckRole = "assertion"
    case_sensitive: bool = False
    turn: int | None = None
    """The turn that the parent names; None: the context's."""


def evaluate(check: Check, context: CheckContext, *, role: CheckRole = "assertion") -> CheckResult:
    """Ask `check` of the context's turn, or of the conversation. Never raises for what is found."""
    return _evaluate_check(check, context, _Manner(role))


def evaluate_set(checks: CheckSet, context: CheckContext, *, role: CheckRole) -> list[CheckResult]:
    """One result for each key that is given, in the order of the schema."""
    manner = _Manner(role, checks.case_sensitive)
    return [_evaluate(_Question(key, spec), context, manner) for key, spec in checks.given()]


def _evaluate_check(check: Check, context: CheckContext, manner: _Manner) -> CheckResult:
    if "case_sensitive" in check.model_fields_set:
        manner = replace(manner, case_sensitive=check.case_sensitive)
    return _evaluate(_Question(*key_and_spec(check), check), context, manner)


def _evaluate(question: _Question, context: CheckContext, manner: _Manner) -> CheckResult:
    key, spec, check = question.key, question.spec, question.check
    own = spec.turn if key in NAMES_ITS_TURN else check.turn if check is not None else None
    if own is not None:
        manner = replace(manner, turn=own)
    scope = resolve(context, manner.turn)
    if key in COMBINING:
        finding = _combine(key, spec, context, scope, manner)
    elif scope.problem is not None:
        finding = not_assertable(scope.problem)
    elif key in LOOKING:
        finding = _look(key, spec, context, scope, manner)
    elif key in ASKING and context.ask is not None:
        # Of a turn with follow-ups the last answer stands, for judges as for every check.
        about = None if scope.turn is None else scope.turns[-1]
        return _ask(question, replace(context, turn=about), manner)
    else:
        finding = broken(_NO_JUDGE if key in ASKING else _FOLLOW_UP)
    return _result(question, finding, scope, manner)


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
    if scope.problem is not None and scope.label != CONVERSATION:
        return not_assertable(scope.problem)
    return COMBINING[key]([_evaluate_check(child, context, manner) for child in spec])


def _ask(question: _Question, context: CheckContext, manner: _Manner) -> CheckResult:
    check = question.check
    if check is None:
        check = Check(**{CHECK_FIELDS[question.key]: question.spec})
    assert context.ask is not None
    return context.ask(check, context, manner.role).model_copy(update={"role": manner.role})


def _result(question: _Question, finding: Finding, scope: Scope, manner: _Manner) -> CheckResult:
    check = question.check
    passed = finding.passed and finding.assertable and finding.error is None
    wanted = expected(question.key, question.spec)
    return CheckResult(
        name=_name(question, wanted),
        kind=question.key,
        passed=passed,
        score=finding.score if finding.score is not None else float(passed),
        weight=1.0 if check is None else check.weight,
        required=False if check is None else check.required,
        assertable=finding.assertable,
        scope=scope.label,
        role=manner.role,
        expected=wanted,
        found=finding.found,
        excerpt=finding.excerpt,
        error=finding.error,
        children=list(finding.children),
    )


def _name(question: _Question, wanted: str) -> str:
    check = question.check
    if check is None:
        return f"{question.key} {wanted}"
    if check.name is not None:
        return check.name
    return title(question.key, wanted, check)
