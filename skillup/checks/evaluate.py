"""Evaluating a check: the turns it looks at, whether it can, and what it finds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from skillup.checks.context import (
    CannotEvaluateError,
    CheckContext,
    CheckSubject,
    Finding,
    broken,
    listed,
    not_assertable,
)
from skillup.checks.describe import expected, key_and_spec, title, wanted
from skillup.checks.registry import ASKING, COMBINING, LOOKING, NAMES_ITS_TURN, look
from skillup.checks.scoring import weighted_mean
from skillup.schema import templates
from skillup.schema.checks import CHECK_FIELDS, Check, CheckSet
from skillup.schema.grade import CheckResult, CheckRole
from skillup.schema.record import Record, TurnRecord
from skillup.schema.templates import UnresolvedNameError

_MOST_KEPT = 4096


@dataclass(frozen=True, slots=True)
class PreparedCheck:
    """One key of a check or of a set of checks, and all that follows from the case alone."""

    key: str
    spec: Any
    name: str
    expected: str
    owner: Check | CheckSet
    """Where it stands; in a set, nothing can stand beside a key."""
    case_sensitive: bool | None
    """None: as what it is part of."""
    templated: bool
    """Some text of it is a template: it has to be :meth:`filled`."""

    @property
    def turn(self) -> int | Literal["last"] | None:
        """The turn that it names itself."""
        if self.key in NAMES_ITS_TURN:
            named: int = self.spec.turn
            return named
        return self.owner.turn if isinstance(self.owner, Check) else None

    def filled(self, variables: Mapping[str, str]) -> PreparedCheck:
        """With its templates filled in; raises UnresolvedNameError."""
        spec = templates.fill(self.key, self.spec, variables)
        if isinstance(self.owner, CheckSet):
            return _prepared(self.owner, self.key, spec)
        check = self.owner.model_copy(update={CHECK_FIELDS[self.key]: spec})
        return _prepared(check, self.key, spec)


# By identity, since to compare checks costs more than to describe them. The check is kept, too, so
# that no other object can get its id.
_prepared_checks: dict[int, tuple[Check | CheckSet, tuple[PreparedCheck, ...]]] = {}


def prepared(owner: Check | CheckSet) -> tuple[PreparedCheck, ...]:
    """The check, or one for each key of the set that is given, in the order of the schema."""
    known = _prepared_checks.get(id(owner))
    if known is None:
        if len(_prepared_checks) >= _MOST_KEPT:
            _prepared_checks.clear()
        given = [key_and_spec(owner)] if isinstance(owner, Check) else owner.given()
        known = owner, tuple(_prepared(owner, key, spec) for key, spec in given)
        _prepared_checks[id(owner)] = known
    return known[1]


def _prepared(owner: Check | CheckSet, key: str, spec: Any) -> PreparedCheck:
    case_sensitive: bool | None = owner.case_sensitive
    if isinstance(owner, Check):
        name = owner.name if owner.name is not None else title(key, expected(key, spec), owner)
        if "case_sensitive" not in owner.model_fields_set:
            case_sensitive = None
    else:
        name = f"{key} {expected(key, spec)}"
    # What stands in a compound check is filled in by itself: it may look at another turn.
    texts = () if owner.literal or key in COMBINING else templates.texts_of_check(key, spec)
    templated = any(templates.has_templates(text, braces=braces) for text, braces in texts)
    return PreparedCheck(key, spec, name, wanted(key, spec), owner, case_sensitive, templated)


# Which turns a check looks at, and whether they can be looked at.

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
    """Why it cannot be looked at; None: it can."""


def resolve(context: CheckContext, number: int | Literal["last"] | None) -> TurnScope:
    """The turn called `number`; without one, the context's turn; without that, all turns."""
    record, turns = context.record, context.record.turns
    if number == "last":
        if not turns:
            return TurnScope("last turn", (), None, "no turn was run")
        return _every_answer(turns[-1], None)
    if number is None or (context.turn is not None and context.turn.turn_number == number):
        # The context's own object wins: while its gate is evaluated, it is not in the record yet.
        if context.turn is None:
            return _conversation(record)
        label = f"turn {context.turn.turn_number}"
        return TurnScope(label, (context.turn,), context.turn, _turn_problem(record, context.turn))
    turn = next((turn for turn in turns if turn.turn_number == number), None)
    if turn is None:
        why = f"there is no turn {number}; turns in the record: {len(turns)}"
        return TurnScope(f"turn {number}", (), None, why)
    return _every_answer(turn, _turn_problem(record, turn))


def _every_answer(turn: TurnRecord, problem: str | None) -> TurnScope:
    """A turn that is named from outside: with its follow-ups."""
    steps = tuple(turn.executed())
    return TurnScope(f"turn {turn.turn_number}", steps, turn, problem or _first_problem(steps))


def _turn_problem(record: Record, turn: TurnRecord) -> str | None:
    problem = None if turn.status == "completed" else _problem(turn)
    if problem is None and record.execution_mode == "single_shot":
        return "the conversation was run as one message (single_shot): it has no turns"
    return problem


def _conversation(record: Record) -> TurnScope:
    turns: list[TurnRecord] = []
    for turn in record.turns:
        turns.extend(turn.executed() if turn.follow_ups else (turn,))
    if record.skipped is not None:
        problem: str | None = f"the case was skipped: {record.skipped}"
    elif record.error is not None:
        problem = f"the case ended in an error ({record.error.kind}): {record.error.message}"
    elif not turns:
        problem = "no turn was run"
    else:
        problem = _first_problem(turns)
    return TurnScope(CONVERSATION, tuple(turns), None, problem)


def _first_problem(turns: Iterable[TurnRecord]) -> str | None:
    return next((_problem(turn) for turn in turns if turn.status != "completed"), None)


def _problem(turn: TurnRecord) -> str:
    """Why a turn that was not completed cannot be looked at."""
    if turn.status == "error":
        kind = f" ({turn.error.kind})" if turn.error is not None else ""
        return f"turn {turn.turn_number} ended in an error{kind}"
    how = "was skipped" if turn.status == "skipped" else "failed"
    return f"turn {turn.turn_number} {how}" + (f": {turn.reason}" if turn.reason else "")


@dataclass(frozen=True, slots=True)
class _Mode:
    """What a compound check hands down to its children."""

    role: CheckRole = "assertion"
    negated: bool = False
    """It should not hold (`none_of`, `failure`)."""
    case_sensitive: bool = False
    turn: int | Literal["last"] | None = None
    """The turn that the parent names; None: the context's."""


def evaluate(
    check: Check,
    context: CheckContext,
    *,
    role: CheckRole = "assertion",
    required: bool = False,
    negated: bool = False,
) -> CheckResult:
    """Evaluate `check` on the context's turn, or the conversation. Never raises for what is found.

    `required`: the result is, whatever the check says. `negated`: it is one that should fail.
    """
    return _evaluate(prepared(check)[0], context, _Mode(role, negated), required)


def evaluate_set(
    checks: CheckSet, context: CheckContext, *, role: CheckRole, required: bool = False
) -> list[CheckResult]:
    """One result for each key that is given, in the order of the schema."""
    return [_evaluate(check, context, _Mode(role), required) for check in prepared(checks)]


def _evaluate(
    check: PreparedCheck, context: CheckContext, mode: _Mode, required: bool
) -> CheckResult:
    key, owner = check.key, check.owner
    if check.case_sensitive is not None or check.turn is not None:
        mode = replace(
            mode,
            case_sensitive=mode.case_sensitive
            if check.case_sensitive is None
            else check.case_sensitive,
            turn=mode.turn if check.turn is None else check.turn,
        )
    scope = resolve(context, mode.turn)
    unresolved: str | None = None
    if check.templated and scope.problem is None:
        try:
            check = check.filled(_variables(context, scope, mode))
        except UnresolvedNameError as missing:
            unresolved = str(missing)
    if key in COMBINING:
        finding = _combine(check, context, scope, mode)
        check = _named_by_children(check, finding)
    elif scope.problem is not None:
        finding = not_assertable(scope.problem)
    elif unresolved is not None:
        finding = broken(unresolved, "template")
    elif key in LOOKING:
        finding = _look(check, context, scope, mode)
    elif key in ASKING and context.withheld is not None:
        finding = Finding(False, context.withheld, assertable=False, evaluated=False)
    elif key in ASKING and context.ask is not None:
        # Of a turn with follow-ups the last answer stands, for judges as for every check.
        about = None if scope.turn is None else scope.turns[-1]
        return _ask(check, replace(context, turn=about), mode, required)
    elif key in ASKING:
        finding = broken("needs a judge that this version does not run")
    else:
        finding = broken("a follow-up is no check of its own: its checks are of the turn it makes")
    passed = finding.passed and finding.assertable and finding.error is None
    # A required check has to pass wherever it stands, but for one that has to fail.
    lacks = key != "none_of" and any(c.required and not c.passed for c in finding.children)
    return CheckResult(
        name=check.name,
        kind=key,
        passed=passed,
        score=finding.score if finding.score is not None else float(passed),
        weight=owner.weight if isinstance(owner, Check) else 1.0,
        required=required or (isinstance(owner, Check) and owner.required) or lacks,
        assertable=finding.assertable,
        evaluated=finding.evaluated,
        scope=scope.label,
        role=mode.role,
        expected=check.expected,
        found=finding.found,
        excerpt=finding.excerpt,
        spans=list(finding.spans),
        skill=check.spec if key in ("skill_used", "skill_not_used") else None,
        error=finding.error,
        error_kind=finding.error_kind,
        children=list(finding.children),
    )


def _variables(context: CheckContext, scope: TurnScope, mode: _Mode) -> dict[str, str]:
    """As they stood when the checked turn ended; its gate is evaluated before its captures."""
    if scope.turn is None:
        return context.record.variables_after(None)
    gated = mode.role == "post_condition" and scope.turn is context.turn
    return context.record.variables_after(scope.turn.turn_number - gated)


def _look(check: PreparedCheck, context: CheckContext, scope: TurnScope, mode: _Mode) -> Finding:
    subject = CheckSubject(context.record, scope.turns, context.read_file, mode.case_sensitive)
    try:
        return look(check.key, check.spec, subject, negated=mode.negated)
    except CannotEvaluateError as trouble:
        return broken(str(trouble))


def _ask(check: PreparedCheck, context: CheckContext, mode: _Mode, required: bool) -> CheckResult:
    owner = check.owner
    if not isinstance(owner, Check):
        owner = Check.model_construct(**{CHECK_FIELDS[check.key]: check.spec})
    assert context.ask is not None
    update = {"role": mode.role, "required": True} if required else {"role": mode.role}
    return context.ask(owner, context, mode.role).model_copy(update=update)


# Checks made of checks.


def _named_by_children(check: PreparedCheck, finding: Finding) -> PreparedCheck:
    """A compound check with templates in it, named as they were filled in."""
    if not any(prepared(child)[0].templated for child in check.spec):
        return check
    names = "[" + "; ".join(child.name for child in finding.children) + "]"
    own = isinstance(check.owner, Check) and check.owner.name is not None
    return replace(check, name=check.name if own else f"{check.key} {names}", expected=names)


def _combine(check: PreparedCheck, context: CheckContext, scope: TurnScope, mode: _Mode) -> Finding:
    # Of a conversation that cannot be looked at as a whole, single turns still can: so each child
    # is left to look at its own scope. A turn has no parts.
    if scope.problem is not None and scope.label != CONVERSATION:
        return not_assertable(scope.problem)
    if check.key == "none_of":
        mode = replace(mode, negated=not mode.negated)
    children = tuple(_evaluate(prepared(one)[0], context, mode, False) for one in check.spec)
    passed = [child for child in children if child.passed]
    failed = [child for child in children if not child.passed]
    if check.key == "any_of":
        score = max((child.score for child in children), default=0.0)
        if passed:  # outweighs another that could not be evaluated
            found, excerpt = f"passed: {passed[0].name}", passed[0].excerpt
            return Finding(True, found, excerpt, score=score, children=children)
        return _failed(children, "none passed", children, score)
    if check.key == "all_of":
        score = weighted_mean(children)
        if failed:
            return _failed(children, f"failed: {_names(failed)}", failed, score)
        return Finding(True, "all passed", children[0].excerpt, score=score, children=children)
    if passed:
        return _failed(children, f"passed: {_names(passed)}", passed, 0.0)
    # What could not be looked at proves nothing.
    if all(child.assertable and child.error is None for child in children):
        return Finding(True, "none passed", children[0].excerpt, score=1.0, children=children)
    return _failed(children, "", children, 0.0)


def _failed(
    children: tuple[CheckResult, ...], found: str, shown: Sequence[CheckResult], score: float
) -> Finding:
    wrong = next((child for child in children if child.error is not None), None)
    if wrong is not None:
        error, kind = f"{wrong.name}: {wrong.error}", wrong.error_kind
        return Finding(False, found, error=error, error_kind=kind, children=children)
    absent = next((child for child in children if not child.assertable), None)
    if absent is None:
        return Finding(False, found, shown[0].excerpt, score=score, children=children)
    found = f"{found}; {absent.found}" if found else absent.found
    finding = Finding(False, found, assertable=False, score=score, children=children)
    return replace(finding, evaluated=absent.evaluated)


def _names(children: Sequence[CheckResult]) -> str:
    return listed(child.name for child in children)
