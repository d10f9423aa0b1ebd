"""One record in, one grade out; the rules are those of docs/verdicts.md."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from skillup.checks.context import CheckContext
from skillup.checks.evaluate import (
    FollowUpResult,
    evaluate,
    evaluate_set,
    evaluate_turn,
    passes,
    weighted_mean,
)
from skillup.judges.evaluate import Judge, PendingJudgements, UsageTracker, error_result
from skillup.judges.evaluate import evaluate as evaluate_judged
from skillup.judges.verdict import Judged, apart_from_skill_use, decide
from skillup.schema.case import Case, PostCondition, Turn
from skillup.schema.grade import CheckResult, FollowUpGrade, Grade, Simulated, TurnGrade
from skillup.schema.judge import JudgeConfig
from skillup.schema.record import (
    FileState,
    Record,
    TurnError,
    TurnRecord,
    joined,
    total_cost,
    total_usage,
)
from skillup.schema.suite import lead_of

ReadFile = Callable[[FileState], bytes | None]


async def grade(
    record: Record, read_file: ReadFile, judge: Judge, *, case: Case | None = None
) -> Grade:
    """:func:`grade_record` with `judge` to answer what rules cannot; `judging` is what it took."""
    usage = UsageTracker()
    case = case or Case.model_validate(record.case)
    graded = await evaluate_judged(
        lambda pending: grade_record(record, read_file, case=case, pending=pending),
        judge,
        usage,
        case,
    )
    took = joined(record.judging, usage.judging)
    return graded if took is None else graded.model_copy(update={"judging": took})


def grade_record(
    record: Record,
    read_file: ReadFile,
    *,
    case: Case | None = None,
    pending: PendingJudgements | None = None,
) -> Grade:
    """The grade of `record`, by the case as it was run or by an edited `case`.

    Pure: the same record, case and answers in `pending` always give the same grade. Without them,
    what only a judge can evaluate is an ERROR.
    """
    case = case or Case.model_validate(record.case)
    ask = pending.ask if pending is not None else None
    context = CheckContext(as_written(record, case), None, read_file, ask)
    case = _up_to_the_gate(case, context)
    context = replace(context, record=as_written(record, case))
    written = dict(enumerate(case.input.all_turns(), start=1))
    turns = [_grade_turn(turn, written.get(turn.turn_number), context) for turn in record.turns]
    present = {turn.turn_number for turn in context.record.turns}
    missing = [
        _grade_turn(
            TurnRecord(
                turn_number=number,
                status="skipped",
                reason=f"turn {number} was not run",
                content=written[number].content or written[number].respond or "",
            ),
            written[number],
            context,
        )
        for number in range(1, (written_turns(case) or 0) + 1)
        if number not in present
    ]
    conversation = _conversation_checks(case, context, pending)
    judged = Judged(case, record, turns[: len(context.record.turns)], missing, conversation)
    error = _error_of(record, turns, conversation)
    verdict = decide(judged, error)
    # What other trials' records count is not counted again.
    own = [step for turn in record.turns if turn.counted_by is None for step in turn.executed()]
    same = ("suite", "case_id", "variant", "trial", "attempt", "execution_mode", "session_id")
    return Grade(
        **{name: getattr(record, name) for name in same},
        title=case.title,
        tags=case.tags,
        engine=record.engine.profile,
        status=verdict.status,
        status_apart=apart_from_skill_use(judged, error),
        score=verdict.score,
        reason=verdict.reason + _given_up(record),
        turns=turns,
        assertions=conversation,
        usage=total_usage(step.usage for step in own),
        cost_usd=total_cost(step.cost_usd for step in own),
        duration_ms=record.duration_ms,
        error=error.model_dump() if error else None,
        simulator=_simulated(record),
        warnings=_warnings(record),
    )


# The part of record and case that is judged.


def written_turns(case: Case) -> int | None:
    """How many turns `case` writes down; None where what took place decides how many there are."""
    if case.input.turns is not None:
        return len(case.input.turns)
    return 1 if case.input.prompt is not None and lead_of(case) is None else None


def as_written(record: Record, case: Case) -> Record:
    """`record` without the turns that `case` does not have, and with the `vars` that it changed."""
    update: dict[str, Any] = {}
    count, recorded_vars = written_turns(case), record.case.get("vars") or {}
    if count is not None and len(record.turns) > count:
        update["turns"] = record.turns[:count]
    known = record.initial_variables
    anew = {k: v for k, v in case.vars.items() if k not in known or recorded_vars.get(k) != v}
    if anew:
        update["initial_variables"] = {**known, **anew}
    return record.model_copy(update=update) if update else record


def _up_to_the_gate(case: Case, context: CheckContext) -> Case:
    """`case` without what came of a gate that failed and leaves the verdict to the judges."""
    turns = case.input.turns or []
    for number, (recorded, turn) in enumerate(zip(context.record.turns, turns, strict=False)):
        gate = turn.post_condition
        if gate is None or gate.on_fail != "judge" or recorded.status != "completed":
            continue
        results = _gate_results(recorded, gate, context)
        if all(r.passed for r in results) or any(r.error for r in results):
            continue
        first = [turn.model_copy(update={"post_condition": None, "capture": []})]
        kept = case.input.model_copy(update={"turns": turns[:number] or first})
        return case.model_copy(update={"input": kept})
    return case


# Turns.


def _gate_results(
    turn: TurnRecord, gate: PostCondition | None, context: CheckContext
) -> list[CheckResult]:
    if gate is None:
        return []
    # The gate was evaluated while the turn was completed; failing it made the turn `failed`.
    gated = turn.model_copy(update={"status": "completed"}) if turn.status == "failed" else turn
    return evaluate_set(gate, replace(context, turn=gated), role="post_condition", required=True)


_OF_THE_TURN = (
    *("turn_number", "status", "reason", "source", "content", "response"),
    *("session_verified", "captures", "counted_by"),
)


def _grade_turn(turn: TurnRecord, written: Turn | None, context: CheckContext) -> TurnGrade:
    """`turn` judged by what is `written` of it in the case (None: the case has no such turn)."""
    gate = _gate_results(turn, written.post_condition if written is not None else None, context)
    outcome = evaluate_turn(written.checks() if written is not None else [], turn, context)
    executed = list(turn.executed()) if turn.follow_ups else (turn,)
    graded = TurnGrade(
        **{name: getattr(turn, name) for name in _OF_THE_TURN},
        score=0.0,
        post_condition_passed=all(result.passed for result in gate) if gate else None,
        checks=[*gate, *outcome.results],
        follow_ups=[_follow_up(one, outcome.follow_ups) for one in outcome.follow_ups],
        passed_on=outcome.passed_on,
        usage=total_usage([step.usage for step in executed]),
        cost_usd=total_cost([step.cost_usd for step in executed]),
        duration_ms=sum([step.duration_ms for step in executed]),
        error=turn.error.model_dump() if turn.error else None,
    )
    if turn.status != "completed":
        return graded
    return graded.model_copy(update={"score": weighted_mean(graded.deciding_checks())})


def _follow_up(one: FollowUpResult, every: Sequence[FollowUpResult]) -> FollowUpGrade:
    answer = one.answer
    place = answer.asked_by
    below = [other for other in every if other.answer.asked_by[: len(place)] == place]
    return FollowUpGrade(
        label=one.label,
        asked_by=place,
        content=answer.content,
        response=answer.response,
        passed=any(passes(other.results) for other in below),
        score=weighted_mean(one.results) if one.results else 0.0,
        checks=list(one.results),
        usage=answer.usage.model_dump() if answer.usage else None,
        cost_usd=answer.cost_usd,
        duration_ms=answer.duration_ms,
    )


# The conversation.


def _conversation_checks(
    case: Case, context: CheckContext, pending: PendingJudgements | None
) -> list[CheckResult]:
    """The gate `expect`; the conversation's checks; and, if the gate passes, the judges."""
    results: list[CheckResult] = []
    if case.expect is not None:
        results = evaluate_set(case.expect, context, role="expect", required=True)
    if not all(result.passed for result in results):
        context = replace(context, withheld="not asked: `expect` failed")
        return [*results, *(evaluate(check, context) for check in case.checks())]
    results.extend(evaluate(check, context) for check in case.checks())
    for number, judge in enumerate(case.all_judges()):
        if judge.type in (None, "rule_based"):
            found = _by_rules(judge, context)
        else:
            found = pending.judge(number, judge, context) if pending is not None else []
            why = "no judge was asked: this grade is by rules alone"
            found = found or [error_result(str(judge.type), "judge", why)]
        results.extend(result.model_copy(update={"required": judge.required}) for result in found)
    return results


def _by_rules(judge: JudgeConfig, context: CheckContext) -> list[CheckResult]:
    """Failure rules, which outrank success rules, then those.

    A failure rule's result is turned round: it passes when its pattern is absent. That weighs
    nothing, since it speaks for nothing; one that could not be evaluated does not pass.
    """
    failure = []
    for check in judge.failure:
        result = evaluate(check, context, role="failure", negated=True)
        absent = result.assertable and result.error is None and not result.passed
        turned = {
            "passed": absent,
            "score": float(absent),
            "weight": 0.0,
            "name": f"not ({result.name})",
            "expected": f"not: {result.expected}",
        }
        failure.append(result.model_copy(update=turned))
    success = [evaluate(check, context, role="success") for check in judge.success]
    if not success and judge.otherwise == "pass" and all(rule.passed for rule in failure):
        found = f"failure rules: {len(failure)}; none matches"
        success = [
            CheckResult(
                name="no rule is broken", kind="rule_based", passed=True, score=1.0, role="judge",
                expected="no failure rule matches", found=found,
            )
        ]  # fmt: skip
    return [*failure, *success]


# What else a grade says of a record.


def _error_of(
    record: Record, turns: Sequence[TurnGrade], conversation: Sequence[CheckResult]
) -> TurnError | None:
    if (error := record.first_error()) is not None:
        return error
    for turn in record.turns:
        if turn.status == "error":
            message = f"turn {turn.turn_number} ended in an error that the record does not name"
            return TurnError(kind="internal", message=message)
    checks = [check for turn in turns for check in turn.checks]
    checks.extend(check for turn in turns for f in turn.follow_ups for check in f.checks)
    for check in [*checks, *conversation]:
        if check.error:
            message = f"the check `{check.name}` could not be evaluated: {check.error}"
            return TurnError(kind=check.error_kind or "judge", message=message)
    return None


def _simulated(record: Record) -> Simulated | None:
    """The simulated user's share in the trial; None if nobody played the user."""
    turns = [turn for turn in record.turns if turn.source == "simulator"]
    end = record.simulated_end
    if not turns and end is None:
        return None
    # What is shared with a fork's parent is counted there.
    parts = [turn.simulator for turn in turns if turn.counted_by is None]
    infos = [i for i in [*parts, end.info if end is not None else None] if i is not None]
    return Simulated(
        messages=sum(turn.started_at is not None for turn in turns),
        stop=end.stop if end is not None else None,
        reason=end.reason if end is not None else "",
        models=list(dict.fromkeys(info.model for info in infos if info.model is not None)),
        usage=total_usage(info.usage for info in infos),
        cost_usd=total_cost(info.cost_usd for info in infos),
    )


def _given_up(record: Record) -> str:
    """What the verdict's reason adds if the user did not come to a good end; checks decide."""
    end = record.simulated_end
    if end is None or end.stop == "completed":
        return ""
    if end.stop == "limit":
        return f"; the simulated user did not end the conversation: {end.reason}"
    return "; the simulated user gave up" + (f": {end.reason}" if end.reason else "")


def _warnings(record: Record) -> list[str]:
    warnings = []
    if record.engine.isolation == "shared":
        warnings.append(
            "isolation: shared: the user's own skills, memory and settings were within reach"
        )
    if record.execution_mode == "single_shot":
        warnings.append("single_shot: the engine cannot resume, so all turns were one message")
    return warnings
