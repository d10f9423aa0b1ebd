"""Evaluating checks: the turns they look at, whether they can, what they find, what it scores."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, Literal

from skillup.checks.context import (
    CannotEvaluateError,
    CheckContext,
    CheckSubject,
    Finding,
    NotAssertableError,
    listed,
)
from skillup.checks.registry import COMPOSITE, FOLLOW_UP, KINDS, converted, expected, look, title
from skillup.dataclass import frozen
from skillup.schema import templates
from skillup.schema.checks import CHECK_FIELDS, Check, CheckSet
from skillup.schema.grade import CheckResult, CheckRole, FollowUpGrade
from skillup.schema.record import TurnRecord

Number = int | Literal["last"] | None
CONVERSATION = "conversation"

# Scores, 0..1 (docs/verdicts.md).


def weighted_mean(results: Sequence[CheckResult]) -> float:
    """The weighted mean of the scores; 1.0 without any weight, 0.0 if a required one failed."""
    if any(result.required and not result.passed for result in results):
        return 0.0
    total = sum([result.weight for result in results])
    return sum([r.weight * r.score for r in results]) / total if total else 1.0


def aggregate(scores: Sequence[float], how: Literal["mean", "min", "max"]) -> float:
    """One score of several; 1.0 of none."""
    if not scores:
        return 1.0
    return sum(scores) / len(scores) if how == "mean" else {"min": min, "max": max}[how](scores)


def reaches(score: float, threshold: float) -> bool:
    """Whether `score` is at least `threshold`, but for the rounding of sums."""
    return score >= threshold - 1e-9


def unmet(results: Iterable[CheckResult]) -> list[CheckResult]:
    """The checks that failed and count: one that weighs nothing only informs, unless required."""
    return [r for r in results if not r.passed and r.evaluated and (r.weight or r.required)]


def speaks_for_it(results: Iterable[CheckResult]) -> bool:
    """Whether one that weighs something has passed: without that nothing is a success."""
    return any(result.passed and result.weight for result in results)


# Which turns a check looks at, and whether they can be looked at.


@frozen
class TurnScope:
    label: str  # ``turn 2`` or ``conversation``
    turns: tuple[TurnRecord, ...]
    turn: TurnRecord | None  # The one turn; None: the conversation
    problem: str | None  # Why it cannot be looked at; None: it can


def resolve(context: CheckContext, number: Number) -> TurnScope:
    """The turn called `number`; without one, the context's turn; without that, all turns."""
    record, turns, own = context.record, context.record.turns, context.turn
    if number is None and own is None:
        every = tuple(record.executed())
        problem = _problem(every) if every else "no turn was run"
        if record.error is not None:
            problem = f"the case ended in an error ({record.error.kind})"
        if record.skipped is not None:
            problem = f"the case was skipped: {record.skipped}"
        return TurnScope(CONVERSATION, every, None, problem)
    as_one = None
    if record.execution_mode == "single_shot":
        as_one = "the conversation was run as one message (single_shot): it has no turns"
    # The context's own object wins: while its gate is evaluated, it is not in the record yet.
    if own is not None and number in (None, own.turn_number):
        return TurnScope(f"turn {own.turn_number}", (own,), own, _problem([own]) or as_one)
    if number == "last" and not turns:
        return TurnScope("last turn", (), None, "no turn was run")
    named = [turn for turn in turns if turn.turn_number == number]
    if number != "last" and not named:
        why = f"there is no turn {number}; turns in the record: {len(turns)}"
        return TurnScope(f"turn {number}", (), None, why)
    # A turn that is named from outside: with its follow-ups.
    turn = turns[-1] if number == "last" else named[0]
    steps = tuple(turn.executed())
    problem = None if number == "last" else _problem([turn]) or as_one
    return TurnScope(f"turn {turn.turn_number}", steps, turn, problem or _problem(steps))


def _problem(turns: Iterable[TurnRecord]) -> str | None:
    """Why the first turn that was not completed cannot be looked at; None: all were."""
    turn = next((turn for turn in turns if turn.status != "completed"), None)
    if turn is None:
        return None
    if turn.status == "error":
        kind = f" ({turn.error.kind})" if turn.error is not None else ""
        return f"turn {turn.turn_number} ended in an error{kind}"
    how = "was skipped" if turn.status == "skipped" else "failed"
    why = f": {turn.reason}" if turn.reason else ""
    return f"turn {turn.turn_number} {how}{why}"


@frozen
class _Mode:
    """What a compound check hands down to its children."""

    role: CheckRole = "assertion"
    negated: bool = False  # It should fail (`none_of`, `failure`)
    case_sensitive: bool = False
    turn: Number = None  # The turn that the parent names; None: the context's


def evaluate(
    check: Check, context: CheckContext, *, role: CheckRole = "assertion", negated: bool = False
) -> CheckResult:
    """`check` on the context's turn, or the conversation; `negated`: it should fail."""
    return _evaluate(check, *check.key_and_spec(), context, _Mode(role, negated))


def evaluate_set(
    checks: CheckSet, context: CheckContext, *, role: CheckRole, required: bool = False
) -> list[CheckResult]:
    mode = _Mode(role)
    return [_evaluate(checks, key, spec, context, mode, required) for key, spec in checks.given()]


def _evaluate(
    owner: Check | CheckSet,
    key: str,
    spec: Any,
    context: CheckContext,
    mode: _Mode,
    required: bool = False,
) -> CheckResult:
    """One key of a check or of a set of checks; in a set, nothing can stand beside it."""
    own = owner if isinstance(owner, Check) else None
    if own is None or "case_sensitive" in own.model_fields_set:
        mode = replace(mode, case_sensitive=owner.case_sensitive)
    turn: Number = spec.turn if "turn" in key else None if own is None else own.turn
    if turn is not None:
        mode = replace(mode, turn=turn)
    scope = resolve(context, mode.turn)
    spec = converted(key, spec)
    try:
        # What stands in a compound check is filled in by itself: it may look at another turn.
        if not (owner.literal or key in COMPOSITE or scope.problem):
            # With variables as they stood when the turn ended; its gate precedes its captures.
            gated = mode.role == "post_condition" and scope.turn is context.turn
            end = None if scope.turn is None else scope.turn.turn_number - gated
            spec = templates.fill(key, spec, context.record.variables_after(end))
        if key in COMPOSITE:
            finding = _combine(key, spec, context, scope, mode)
        elif scope.problem is not None:
            raise NotAssertableError(scope.problem)
        elif KINDS[key].find is not None:
            files = context.read_file
            subject = CheckSubject(context.record, scope.turns, files, mode.case_sensitive)
            finding = look(KINDS[key], spec, subject, negated=mode.negated)
        elif key == FOLLOW_UP:
            why = "a follow-up is no check of its own: its checks are of the turn it makes"
            raise CannotEvaluateError(why)
        elif context.withheld is not None:
            finding = Finding(False, context.withheld, assertable=False, evaluated=False)
        elif context.ask is None:
            raise CannotEvaluateError("needs a judge that this version does not run")
        else:
            # Of a turn with follow-ups the last answer stands, for judges as for every check.
            about = replace(context, turn=None if scope.turn is None else scope.turns[-1])
            filled = {CHECK_FIELDS[key]: spec}
            asked = own.model_copy(update=filled) if own else Check.model_construct(**filled)
            update = {"role": mode.role, "required": True} if required else {"role": mode.role}
            return context.ask(asked, about, mode.role).model_copy(update=update)
    except templates.UnresolvedNameError as missing:
        finding = Finding(False, "", error=str(missing), error_kind="template")
    except CannotEvaluateError as trouble:
        finding = Finding(False, "", error=str(trouble))
    except NotAssertableError as nothing:
        finding = Finding(False, str(nothing), assertable=False)
    except (ArithmeticError, LookupError, RecursionError, TypeError, ValueError) as defect:
        finding = Finding(False, "", error=f"skillup itself failed: {defect!r}; please report it")
    passed = finding.passed and finding.assertable and finding.error is None
    # A required check has to pass wherever it stands, but for one that has to fail.
    lacks = key != "none_of" and any(c.required and not c.passed for c in finding.children)
    parts = finding.children or spec  # of a compound check, as its parts were filled in
    name = None if own is None else own.name
    return CheckResult(
        name=title(key, parts, own, turn) if name is None else name,
        kind=key,
        passed=passed,
        score=finding.score if finding.score is not None else float(passed),
        weight=1.0 if own is None else own.weight,
        required=required or (own is not None and own.required) or lacks,
        assertable=finding.assertable,
        evaluated=finding.evaluated,
        scope=scope.label,
        role=mode.role,
        expected=expected(key, parts),
        found=finding.found,
        excerpt=finding.excerpt,
        spans=list(finding.spans),
        # Where it is no surprise that it is not there, nobody reads what would have matched.
        nearest=finding.missing.nearest() if finding.missing and not mode.negated else None,
        skill=spec if key in ("skill_used", "skill_not_used") else None,
        error=finding.error,
        error_kind=finding.error_kind,
        children=list(finding.children),
    )


def _combine(
    key: str, checks: Sequence[Check], context: CheckContext, scope: TurnScope, mode: _Mode
) -> Finding:
    # Of a conversation that cannot be looked at as a whole, single turns still can: so each child
    # is left to look at its own scope. A turn has no parts.
    if scope.problem is not None and scope.label != CONVERSATION:
        raise NotAssertableError(scope.problem)
    if key == "none_of":
        mode = replace(mode, negated=not mode.negated)
    children = tuple(_evaluate(one, *one.key_and_spec(), context, mode) for one in checks)
    passed = [child for child in children if child.passed]
    failed = [child for child in children if not child.passed]
    score, found, deciders = 0.0, "", list(children)
    if key == "any_of":
        score = max((child.score for child in children), default=0.0)
        if passed:  # outweighs another that could not be evaluated
            found, excerpt = f"passed: {passed[0].name}", passed[0].excerpt
            return Finding(True, found, excerpt, score=score, children=children)
        found = "none passed"
    elif key == "all_of":
        score = weighted_mean(children)
        if not failed:
            return Finding(True, "all passed", children[0].excerpt, score=score, children=children)
        found, deciders = f"failed: {listed(child.name for child in failed)}", failed
    elif passed:
        found, deciders = f"passed: {listed(child.name for child in passed)}", passed
    # What could not be looked at proves nothing.
    elif all(child.assertable and child.error is None for child in children):
        return Finding(True, "none passed", children[0].excerpt, score=1.0, children=children)
    wrong = next((child for child in children if child.error is not None), None)
    if wrong is not None:
        error, kind = f"{wrong.name}: {wrong.error}", wrong.error_kind
        return Finding(False, found, error=error, error_kind=kind, children=children)
    absent = next((child for child in children if not child.assertable), None)
    if absent is None:
        return Finding(False, found, deciders[0].excerpt, score=score, children=children)
    found = f"{found}; {absent.found}" if found else absent.found
    return Finding(
        False, found, assertable=False, evaluated=absent.evaluated, score=score, children=children
    )


# A turn's checks and their follow-ups. A check may carry follow-ups of its own, and a `prompt` may
# stand alone. When a check fails, the follow-ups are sent in this order: those of failing checks,
# in the order of the checks, then those that stand alone. Each answer has checks again. A follow-up
# that passes heals what failed, but for required checks. The same rules apply while the
# conversation goes on (`on_turn_failure`) and when it is graded.

_ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth")


def passes(results: Sequence[CheckResult]) -> bool:
    """Whether a follow-up's own checks heal what failed before it."""
    return speaks_for_it(results) and not unmet(results)


def evaluate_checks(checks: Sequence[Check], context: CheckContext) -> list[CheckResult]:
    """The results of `checks`, in order; prompts that stand alone have none."""
    return [evaluate(check, context) for check in checks if not _stands_alone(check)]


def evaluate_turn(
    checks: Sequence[Check], turn: TurnRecord, context: CheckContext
) -> tuple[list[CheckResult], list[FollowUpGrade], str | None]:
    """The results of `turn`; its follow-ups in order; the label of the one that it passed on.

    `context` is the conversation's.
    """
    answers = [
        (answer, evaluate_checks(nested, replace(context, turn=answer)))
        for answer, nested in _answers(checks, turn)
    ]
    follow_ups = []
    for number, (answer, results) in enumerate(answers, start=1):
        word = _ORDINALS[number - 1] if number <= len(_ORDINALS) else f"{number}th"
        place = answer.asked_by
        below = [others for other, others in answers if other.asked_by[: len(place)] == place]
        graded = FollowUpGrade(
            label=f"{word} follow-up",
            asked_by=place,
            content=answer.content,
            response=answer.response,
            passed=any(map(passes, below)),
            score=weighted_mean(results) if results else 0.0,
            checks=results,
            usage=answer.usage.model_dump() if answer.usage else None,
            cost_usd=answer.cost_usd,
            duration_ms=answer.duration_ms,
        )
        follow_ups.append(graded)
    results = evaluate_checks(checks, replace(context, turn=turn)) if checks else []
    every = [*results, *(r for one in follow_ups for r in one.checks)]
    if not unmet(results) or any(r.required and not r.passed for r in every):
        return results, follow_ups, None
    return results, follow_ups, next((f.label for f in follow_ups if passes(f.checks)), None)


def follow_ups(
    checks: Sequence[Check], results: Sequence[CheckResult]
) -> Iterator[tuple[int, Check]]:
    """What is sent next, with its place in `checks`; an error of ours sends nothing."""
    own = [(place, check) for place, check in enumerate(checks) if not _stands_alone(check)]
    failed = [
        placed
        for placed, result in zip(own, results, strict=True)
        if not result.passed and result.error is None
    ]
    if failed:
        yield from ((place, check) for place, check in failed if check.prompt is not None)
        yield from ((n, check) for n, check in enumerate(checks) if _stands_alone(check))


def _stands_alone(check: Check) -> bool:
    return check.prompt is not None and check.key == FOLLOW_UP


def _answers(
    checks: Sequence[Check], turn: TurnRecord
) -> Iterator[tuple[TurnRecord, Sequence[Check]]]:
    """Every follow-up, in the order sent, and the checks of its answer as the case has them."""
    for answer in turn.follow_ups:
        place = answer.asked_by[-1] if answer.asked_by else len(checks)
        nested = checks[place].assertions if 0 <= place < len(checks) else None
        yield answer, nested or []
        yield from _answers(nested or [], answer)
