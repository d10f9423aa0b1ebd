"""Asking a check: where it looks, whether it may, what it finds; a result in every case."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import Literal, NamedTuple

from skillup.checks.context import CheckContext, Subject
from skillup.checks.finding import CannotEvaluateError, Finding, broken, not_assertable
from skillup.checks.question import Question, question_of, questions_of
from skillup.checks.registry import ASKING, COMBINING, LOOKING, look
from skillup.checks.scope import CONVERSATION, Scope, resolve
from skillup.schema.checks import CHECK_FIELDS, Check, CheckSet
from skillup.schema.grade import CheckResult, CheckRole
from skillup.schema.templates import UnresolvedNameError

_NO_JUDGE = "needs a judge that this version does not run"
_FOLLOW_UP = "a follow-up is no check of its own: its checks are asked of the turn it makes"


class _Manner(NamedTuple):
    """How it is asked; a compound check hands this down to its children."""

    role: CheckRole = "assertion"
    case_sensitive: bool = False
    turn: int | Literal["last"] | None = None
    """The turn that the parent names; None: the context's."""
    negated: bool = False
    """Whether it is hoped that it does not hold (`none_of`, `failure`)."""


def evaluate(
    check: Check,
    context: CheckContext,
    *,
    role: CheckRole = "assertion",
    required: bool = False,
    negated: bool = False,
) -> CheckResult:
    """Ask `check` of the context's turn, or of the conversation. Never raises for what is found.

    `required`: the result is, whatever the check says. `negated`: it is hoped that it fails.
    """
    return _evaluate(question_of(check), context, _as(role, negated), required)


def evaluate_set(
    checks: CheckSet, context: CheckContext, *, role: CheckRole, required: bool = False
) -> list[CheckResult]:
    """One result for each key that is given, in the order of the schema."""
    manner = _as(role)
    return [_evaluate(question, context, manner, required) for question in questions_of(checks)]


@lru_cache(maxsize=16)
def _as(role: CheckRole, negated: bool = False) -> _Manner:
    return _Manner(role, negated=negated)


def _evaluate(
    question: Question, context: CheckContext, manner: _Manner, required: bool
) -> CheckResult:
    key = question.key
    if question.case_sensitive is not None and question.case_sensitive != manner.case_sensitive:
        manner = manner._replace(case_sensitive=question.case_sensitive)
    if question.turn is not None:
        manner = manner._replace(turn=question.turn)
    scope = resolve(context, manner.turn)
    unresolved: str | None = None
    if question.templated and scope.problem is None:
        try:
            question = question.filled(_variables(context, scope, manner))
        except UnresolvedNameError as missing:
            unresolved = str(missing)
    if key in COMBINING:
        finding = _combine(question, context, scope, manner)
        question = _in_its_childrens_words(question, finding)
    elif scope.problem is not None:
        finding = not_assertable(scope.problem)
    elif unresolved is not None:
        finding = broken(unresolved, "template")
    elif key in LOOKING:
        finding = _look(question, context, scope, manner)
    elif key in ASKING and context.withheld is not None:
        finding = Finding(False, context.withheld, assertable=False, evaluated=False)
    elif key in ASKING and context.ask is not None:
        # Of a turn with follow-ups the last answer stands, for judges as for every check.
        about = None if scope.turn is None else scope.turns[-1]
        return _ask(question, replace(context, turn=about), manner, required)
    else:
        finding = broken(_NO_JUDGE if key in ASKING else _FOLLOW_UP)
    passed = finding.passed and finding.assertable and finding.error is None
    return CheckResult(
        name=question.name,
        kind=key,
        passed=passed,
        score=finding.score if finding.score is not None else float(passed),
        weight=question.weight,
        required=required or question.required or _lacks_a_required_part(key, finding),
        assertable=finding.assertable,
        evaluated=finding.evaluated,
        scope=scope.label,
        role=manner.role,
        expected=question.expected,
        found=finding.found,
        excerpt=finding.excerpt,
        error=finding.error,
        error_kind=finding.error_kind,
        children=list(finding.children),
    )


def _lacks_a_required_part(key: str, finding: Finding) -> bool:
    """A required check has to pass wherever it stands, but for one that has to fail."""
    return key != "none_of" and any(c.required and not c.passed for c in finding.children)


def _variables(context: CheckContext, scope: Scope, manner: _Manner) -> dict[str, str]:
    """As they stood when the checked turn ended; its gate is asked before its captures."""
    if scope.turn is None:
        return context.record.variables_after(None)
    gated = manner.role == "post_condition" and scope.turn is context.turn
    return context.record.variables_after(scope.turn.turn_number - gated)


def _in_its_childrens_words(question: Question, finding: Finding) -> Question:
    """A compound check with templates in it, named as they were filled in."""
    if not any(question_of(child).templated for child in question.spec):
        return question
    listed = "[" + "; ".join(child.name for child in finding.children) + "]"
    name = (
        f"{question.key} {listed}" if question.check is None or question.check.name is None else ""
    )
    return replace(question, name=name or question.name, expected=listed)


def _look(question: Question, context: CheckContext, scope: Scope, manner: _Manner) -> Finding:
    subject = Subject(context.record, scope.turns, context.read_file, manner.case_sensitive)
    try:
        return look(question.key, question.spec, subject, negated=manner.negated)
    except CannotEvaluateError as trouble:
        return broken(str(trouble))


def _combine(question: Question, context: CheckContext, scope: Scope, manner: _Manner) -> Finding:
    # Of a conversation that cannot be asked as a whole, single turns still can: so each child is
    # left to look at its own scope. A turn has no parts.
    if scope.problem is not None and scope.label != CONVERSATION:
        return not_assertable(scope.problem)
    if question.key == "none_of":
        manner = manner._replace(negated=not manner.negated)
    children = [_evaluate(question_of(child), context, manner, False) for child in question.spec]
    return COMBINING[question.key](children)


def _ask(question: Question, context: CheckContext, manner: _Manner, required: bool) -> CheckResult:
    check = question.check
    if check is None:
        check = Check.model_construct(**{CHECK_FIELDS[question.key]: question.spec})
    assert context.ask is not None
    said = context.ask(check, context, manner.role)
    update = {"role": manner.role, "required": True} if required else {"role": manner.role}
    return said.model_copy(update=update)
