"""Asking a check: where it looks, whether it may, what it finds; a result in every case."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Literal, NamedTuple

from skillup.checks.context import (
    CannotEvaluateError,
    CheckContext,
    CheckSubject,
    Finding,
    broken,
    not_assertable,
)
from skillup.checks.describe import expected, key_and_spec, title, wanted
from skillup.checks.registry import ASKING, COMBINING, LOOKING, NAMES_ITS_TURN, look
from skillup.schema import templates
from skillup.schema.checks import CHECK_FIELDS, Check, CheckSet
from skillup.schema.grade import CheckResult, CheckRole
from skillup.schema.record import Record, TurnRecord
from skillup.schema.templates import UnresolvedNameError

# What is asked, made ready once: what a check looks for does not change from record to record.

_MOST_KEPT = 4096


@dataclass(frozen=True, slots=True)
class PreparedCheck:
    """One key of a check or of a set of checks, and all that follows from the case alone."""

    key: str
    spec: Any
    check: Check | None
    """None: it stands in a set, where nothing can stand beside a key."""
    name: str
    expected: str
    weight: float
    required: bool
    turn: int | Literal["last"] | None
    """The turn that it names itself."""
    case_sensitive: bool | None
    """None: it does not say; as what it is part of."""
    owner: Check | CheckSet
    """Where it stands."""
    templated: bool
    """Some text of it is a template: it cannot be asked before it is :meth:`filled`."""

    def filled(self, variables: Mapping[str, str]) -> PreparedCheck:
        """The question with its templates filled in; raises UnresolvedNameError."""
        spec = templates.fill(self.key, self.spec, variables)
        if self.check is None:
            assert isinstance(self.owner, CheckSet)
            return _of_set(self.owner, self.key, spec)
        return _of_check(self.check.model_copy(update={CHECK_FIELDS[self.key]: spec}))


def question_of(check: Check) -> PreparedCheck:
    """What `check` asks."""
    known = _questions.get(id(check))
    if known is None:
        known = _keep(check, (_of_check(check),))
    return known[1][0]


def questions_of(checks: CheckSet) -> tuple[PreparedCheck, ...]:
    """One for each key that is given, in the order of the schema."""
    known = _questions.get(id(checks))
    if known is None:
        known = _keep(checks, tuple(_of_set(checks, key, spec) for key, spec in checks.given()))
    return known[1]


_Kept = tuple[Check | CheckSet, tuple[PreparedCheck, ...]]
# By identity, since to compare checks costs more than to describe them. The check is kept with its
# questions, so that no other object can get its id.
_questions: dict[int, _Kept] = {}


def _keep(asked: Check | CheckSet, questions: tuple[PreparedCheck, ...]) -> _Kept:
    if len(_questions) >= _MOST_KEPT:
        _questions.clear()
    kept = _questions[id(asked)] = (asked, questions)
    return kept


def _of_check(check: Check) -> PreparedCheck:
    key, spec = key_and_spec(check)
    return PreparedCheck(
        key=key,
        spec=spec,
        check=check,
        name=title(key, expected(key, spec), check) if check.name is None else check.name,
        expected=wanted(key, spec),
        weight=check.weight,
        required=check.required,
        turn=spec.turn if key in NAMES_ITS_TURN else check.turn,
        case_sensitive=check.case_sensitive if "case_sensitive" in check.model_fields_set else None,
        owner=check,
        templated=_templated(check, key, spec),
    )


def _of_set(checks: CheckSet, key: str, spec: Any) -> PreparedCheck:
    return PreparedCheck(
        key=key,
        spec=spec,
        check=None,
        name=f"{key} {expected(key, spec)}",
        expected=wanted(key, spec),
        weight=1.0,
        required=False,
        turn=spec.turn if key in NAMES_ITS_TURN else None,
        case_sensitive=checks.case_sensitive,
        owner=checks,
        templated=_templated(checks, key, spec),
    )


def _templated(owner: Check | CheckSet, key: str, spec: Any) -> bool:
    # What stands in a compound check is filled in by itself: it may be asked of another turn.
    return (
        not owner.literal
        and key not in COMBINING
        and any(
            templates.has_templates(text, braces=braces)
            for text, braces in templates.texts_of_check(key, spec)
        )
    )


# Which turns a check is asked of, and whether they can be asked at all.

CONVERSATION = "conversation"


@dataclass(frozen=True, slots=True)
class TurnScope:
    """Where a check looks."""

    label: str
    """``turn 2`` or ``conversation``."""
    turns: tuple[TurnRecord, ...]
    turn: TurnRecord | None
    """The one turn; None: the conversation."""
    problem: str | None
    """Why it cannot be asked; None: it can."""


def resolve(context: CheckContext, number: int | Literal["last"] | None) -> TurnScope:
    """The turn called `number`; without one, the context's turn; without that, all turns."""
    if number == "last":
        return _last(context.record)
    if number is None or (context.turn is not None and context.turn.turn_number == number):
        # The context's own object wins: while its gate is asked, a turn is not in the record yet.
        if context.turn is None:
            return _conversation(context.record)
        return _one_turn(context.record, context.turn)
    turn = _by_number(context.record, number)
    if turn is None:
        why = f"there is no turn {number}; turns held: {len(context.record.turns)}"
        return TurnScope(f"turn {number}", (), None, why)
    return _every_answer(turn, _one_turn(context.record, turn).problem)


def _last(record: Record) -> TurnScope:
    if not record.turns:
        return TurnScope("last turn", (), None, "no turn was held")
    return _every_answer(record.turns[-1], None)


def _every_answer(turn: TurnRecord, problem: str | None) -> TurnScope:
    """A turn that is named from outside: with its follow-ups."""
    steps = tuple(turn.executed())
    return TurnScope(f"turn {turn.turn_number}", steps, turn, problem or _first_problem(steps))


def _by_number(record: Record, number: int) -> TurnRecord | None:
    return next((turn for turn in record.turns if turn.turn_number == number), None)


def _one_turn(record: Record, turn: TurnRecord) -> TurnScope:
    problem = None if turn.status == "completed" else _problem(turn)
    if problem is None and record.execution_mode == "single_shot":
        problem = "the conversation was held as one message (single_shot): it has no turns"
    return TurnScope(f"turn {turn.turn_number}", (turn,), turn, problem)


def _conversation(record: Record) -> TurnScope:
    turns: list[TurnRecord] = []
    for turn in record.turns:
        turns.extend(turn.executed() if turn.follow_ups else (turn,))
    if record.skipped is not None:
        problem: str | None = f"the case was skipped: {record.skipped}"
    elif record.error is not None:
        problem = f"the case ended in an error ({record.error.kind}): {record.error.message}"
    elif not turns:
        problem = "no turn was held"
    else:
        problem = _first_problem(turns)
    return TurnScope(CONVERSATION, tuple(turns), None, problem)


def _first_problem(turns: Iterable[TurnRecord]) -> str | None:
    return next((_problem(turn) for turn in turns if turn.status != "completed"), None)


def _problem(turn: TurnRecord) -> str | None:
    """Why a turn that was not held to its end cannot be asked."""
    number = turn.turn_number
    if turn.status == "error":
        kind = f" ({turn.error.kind})" if turn.error is not None else ""
        return f"turn {number} ended in an error{kind}"
    said = "was skipped" if turn.status == "skipped" else "failed"
    return f"turn {number} {said}" + (f": {turn.reason}" if turn.reason else "")


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
    question: PreparedCheck, context: CheckContext, manner: _Manner, required: bool
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
        spans=list(finding.spans),
        skill=question.spec if key in ("skill_used", "skill_not_used") else None,
        error=finding.error,
        error_kind=finding.error_kind,
        children=list(finding.children),
    )


def _lacks_a_required_part(key: str, finding: Finding) -> bool:
    """A required check has to pass wherever it stands, but for one that has to fail."""
    return key != "none_of" and any(c.required and not c.passed for c in finding.children)


def _variables(context: CheckContext, scope: TurnScope, manner: _Manner) -> dict[str, str]:
    """As they stood when the checked turn ended; its gate is asked before its captures."""
    if scope.turn is None:
        return context.record.variables_after(None)
    gated = manner.role == "post_condition" and scope.turn is context.turn
    return context.record.variables_after(scope.turn.turn_number - gated)


def _in_its_childrens_words(question: PreparedCheck, finding: Finding) -> PreparedCheck:
    """A compound check with templates in it, named as they were filled in."""
    if not any(question_of(child).templated for child in question.spec):
        return question
    listed = "[" + "; ".join(child.name for child in finding.children) + "]"
    name = (
        f"{question.key} {listed}" if question.check is None or question.check.name is None else ""
    )
    return replace(question, name=name or question.name, expected=listed)


def _look(
    question: PreparedCheck, context: CheckContext, scope: TurnScope, manner: _Manner
) -> Finding:
    subject = CheckSubject(context.record, scope.turns, context.read_file, manner.case_sensitive)
    try:
        return look(question.key, question.spec, subject, negated=manner.negated)
    except CannotEvaluateError as trouble:
        return broken(str(trouble))


def _combine(
    question: PreparedCheck, context: CheckContext, scope: TurnScope, manner: _Manner
) -> Finding:
    # Of a conversation that cannot be asked as a whole, single turns still can: so each child is
    # left to look at its own scope. A turn has no parts.
    if scope.problem is not None and scope.label != CONVERSATION:
        return not_assertable(scope.problem)
    if question.key == "none_of":
        manner = manner._replace(negated=not manner.negated)
    children = [_evaluate(question_of(child), context, manner, False) for child in question.spec]
    return COMBINING[question.key](children)


def _ask(
    question: PreparedCheck, context: CheckContext, manner: _Manner, required: bool
) -> CheckResult:
    check = question.check
    if check is None:
        check = Check.model_construct(**{CHECK_FIELDS[question.key]: question.spec})
    assert context.ask is not None
    said = context.ask(check, context, manner.role)
    update = {"role": manner.role, "required": True} if required else {"role": manner.role}
    return said.model_copy(update=update)
