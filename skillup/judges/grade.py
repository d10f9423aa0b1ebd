"""One record in, one grade out: turn by turn, then the conversation, then its judges.

The rules are those of docs/verdicts.md; :mod:`skillup.judges.verdict` draws the conclusion.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from skillup.checks import CheckContext, evaluate, evaluate_set
from skillup.checks.scoring import weighted_mean
from skillup.checks.turn_checks import Level, judge_turn, passes
from skillup.judges.evaluate import Judge, PendingJudgements
from skillup.judges.evaluate import evaluate as evaluate_judged
from skillup.judges.usage import UsageTracker
from skillup.judges.verdict import Judged, Verdict, apart_from_skill_use, decide
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

# Which turns a case is judged by: those of a record beyond them are not.


def written_turns(case: Case) -> int | None:
    """How many turns `case` writes down; None where what took place decides how many there are.

    That is so where a simulated user leads, and for a conversation that is only judged.
    """
    if case.input.turns is not None:
        return len(case.input.turns)
    return 1 if case.input.prompt is not None and lead_of(case) is None else None


def up_to_the_gate(
    case: Case, record: Record, fails: Callable[[TurnRecord, PostCondition], bool]
) -> Case:
    """`case` without what came of a gate that `fails` and leaves the verdict to the judges.

    The answers before it count; of a conversation whose first gate did not hold, its only answer.
    """
    turns = case.input.turns or []
    for number, (held, turn) in enumerate(zip(record.turns, turns, strict=False), start=1):
        gate = turn.post_condition
        if gate is None or gate.on_fail != "judge" or not fails(held, gate):
            continue
        first = [turn.model_copy(update={"post_condition": None, "capture": []})]
        kept = case.input.model_copy(update={"turns": turns[: number - 1] or first})
        return case.model_copy(update={"input": kept})
    return case


def as_written(record: Record, case: Case) -> Record:
    """`record` as `case` has it, which was edited since, or is another's.

    Without the turns that the case does not have, and with the values of `vars` that the case gives
    anew.
    """
    update: dict[str, Any] = {}
    wanted, held = written_turns(case), record.case.get("vars") or {}
    if wanted is not None and len(record.turns) > wanted:
        update["turns"] = record.turns[:wanted]
    known = record.initial_variables
    anew = {k: v for k, v in case.vars.items() if k not in known or held.get(k) != v}
    if anew:
        update["initial_variables"] = {**known, **anew}
    return record.model_copy(update=update) if update else record


# The simulated user's share in a trial, for its grade: what it took, and how it ended.


def simulated(record: Record) -> Simulated | None:
    """None if nobody played the user."""
    turns = [turn for turn in record.turns if turn.source == "simulator"]
    end = record.simulated_end
    if not turns and end is None:
        return None
    # What is shared with a fork's parent is counted there.
    infos = [turn.simulator for turn in turns if turn.held_by is None]
    infos.append(end.info if end is not None else None)
    told = [info for info in infos if info is not None]
    return Simulated(
        messages=sum(turn.started_at is not None for turn in turns),
        stop=end.stop if end is not None else None,
        reason=end.reason if end is not None else "",
        models=list(dict.fromkeys(info.model for info in told if info.model is not None)),
        usage=total_usage(info.usage for info in told),
        cost_usd=total_cost(info.cost_usd for info in told),
    )


def given_up(record: Record) -> list[str]:
    """What a verdict's reason adds if the user did not come to a good end; checks decide."""
    end = record.simulated_end
    if end is None or end.stop == "completed":
        return []
    if end.stop == "limit":
        return ["the simulated user did not end the conversation: " + end.reason]
    return ["the simulated user gave up" + (f": {end.reason}" if end.reason else "")]


async def grade(
    record: Record,
    read_file: Callable[[FileState], bytes | None],
    judge: Judge,
    *,
    case: Case | None = None,
    usage: UsageTracker | None = None,
) -> Grade:
    """:func:`grade_record` with `judge` to answer what rules cannot; `judging` is what it took.

    `usage`: where that is added up, still empty; default: one of its own.
    """
    usage = usage or UsageTracker()
    case = case or Case.model_validate(record.case)
    graded = await evaluate_judged(
        lambda pending: grade_record(record, read_file, case=case, pending=pending),
        judge,
        usage,
        case,
    )
    took = joined(record.judging, usage.judging())
    return graded if took is None else graded.model_copy(update={"judging": took})


def grade_record(
    record: Record,
    read_file: Callable[[FileState], bytes | None],
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
    case = up_to_the_gate(case, record, lambda turn, gate: _gate_fails(turn, gate, context))
    written = as_written(record, case)
    context = replace(context, record=written)
    wanted = dict(enumerate(case.input.all_turns(), start=1))
    turns = [grade_turn(turn, wanted.get(turn.turn_number), context) for turn in record.turns]
    held = {turn.turn_number for turn in written.turns}
    unheld = [
        grade_turn(_unheld(number, wanted[number]), wanted[number], context)
        for number in range(1, (written_turns(case) or 0) + 1)
        if number not in held
    ]
    conversation = _conversation_checks(case, context, pending)
    judged = Judged(case, record, turns[: len(written.turns)], unheld, conversation)
    error = _error_of(record) or _check_error(turns, conversation)
    return _as_grade(judged, turns, decide(judged, error), error)


def grade_turn(turn: TurnRecord, wanted: Turn | None, context: CheckContext) -> TurnGrade:
    """`turn` as it was held, judged by what the case wants of it (None: the case has no such turn).

    `context` is the conversation's.
    """
    gate = _gate_results(turn, wanted.post_condition if wanted is not None else None, context)
    outcome = judge_turn(wanted.checks() if wanted is not None else [], turn, context)
    executed = list(turn.executed()) if turn.follow_ups else (turn,)
    graded = TurnGrade(
        turn_number=turn.turn_number,
        status=turn.status,
        reason=turn.reason,
        source=turn.source,
        content=turn.content,
        response=turn.response,
        score=0.0,
        post_condition_passed=all(result.passed for result in gate) if gate else None,
        session_verified=turn.session_verified,
        captures=turn.captures,
        held_by=turn.held_by,
        checks=[*gate, *outcome.results],
        follow_ups=[_follow_up(level, outcome.levels) for level in outcome.levels],
        passed_on=outcome.passed_on,
        usage=total_usage([step.usage for step in executed]),
        cost_usd=total_cost([step.cost_usd for step in executed]),
        duration_ms=sum([step.duration_ms for step in executed]),
        error=turn.error.model_dump() if turn.error else None,
    )
    if turn.status != "completed":
        return graded
    return graded.model_copy(update={"score": weighted_mean(graded.deciding_checks())})


def _unheld(number: int, turn: Turn) -> TurnRecord:
    """A turn that the case has and the record has not: nothing can be said of it."""
    return TurnRecord(
        turn_number=number,
        status="skipped",
        reason=f"turn {number} was not held",
        content=turn.content or turn.respond or "",
    )


def _gate_results(
    turn: TurnRecord, gate: PostCondition | None, context: CheckContext
) -> list[CheckResult]:
    if gate is None:
        return []
    # The gate was asked while the turn stood as completed; that it did not hold is what made the
    # turn `failed`.
    gated = turn.model_copy(update={"status": "completed"}) if turn.status == "failed" else turn
    return evaluate_set(gate, context.about(gated), role="post_condition", required=True)


def _gate_fails(turn: TurnRecord, gate: PostCondition, context: CheckContext) -> bool:
    results = _gate_results(turn, gate, context)
    failed = any(not result.passed for result in results)
    return failed and turn.status == "completed" and not any(result.error for result in results)


def _follow_up(level: Level, levels: Sequence[Level]) -> FollowUpGrade:
    answer = level.answer
    place = answer.asked_by
    usage: dict[str, Any] | None = answer.usage.model_dump() if answer.usage else None
    return FollowUpGrade(
        label=level.label,
        asked_by=place,
        content=answer.content,
        response=answer.response,
        # It passed if it did, or one of its own follow-ups.
        passed=any(
            passes(one.results) for one in levels if one.answer.asked_by[: len(place)] == place
        ),
        score=weighted_mean(level.results) if level.results else 0.0,
        checks=list(level.results),
        usage=usage,
        cost_usd=answer.cost_usd,
        duration_ms=answer.duration_ms,
    )


def _conversation_checks(
    case: Case, context: CheckContext, pending: PendingJudgements | None
) -> list[CheckResult]:
    """The gate `expect`; the conversation's checks; and, if the gate holds, the judges."""
    results: list[CheckResult] = []
    if case.expect is not None:
        results = evaluate_set(case.expect, context, role="expect", required=True)
    if not all(result.passed for result in results):
        context = replace(context, withheld="not asked: `expect` did not hold")
        return [*results, *(evaluate(check, context) for check in case.checks())]
    results.extend(evaluate(check, context) for check in case.checks())
    for number, judge in enumerate(case.all_judges()):
        if judge.type in (None, "rule_based"):
            said = _by_rules(judge, context)
        else:
            said = _by_judge(number, judge, context, pending)
        results.extend(result.model_copy(update={"required": judge.required}) for result in said)
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
        rules = f"{len(failure)} failure rules, none of which holds"
        name, wanted = "no rule is broken", "no failure rule holds"
        success = [
            CheckResult(
                name=name, kind="rule_based", passed=True, score=1.0, role="judge",
                expected=wanted, found=rules,
            )
        ]  # fmt: skip
    return [*failure, *success]


def _by_judge(
    number: int, judge: JudgeConfig, context: CheckContext, pending: PendingJudgements | None
) -> list[CheckResult]:
    """What the judge `number`, a script or an agent, says."""
    if pending is not None and (results := pending.judge(number, judge, context)):
        return results
    why = "no judge was asked: this grade was made by rules alone"
    kind = judge.type or "judge"
    return [CheckResult(name=kind, kind=kind, passed=False, score=0.0, role="judge", error=why)]


def _error_of(record: Record) -> TurnError | None:
    """What kept the trial or a turn from being held, even where the record does not say what."""
    error = record.first_error()
    untold = [turn.turn_number for turn in record.turns if turn.status == "error"]
    if error is None and untold:
        message = f"turn {untold[0]} ended in an error that the record does not tell"
        return TurnError(kind="internal", message=message)
    return error


def _check_error(
    turns: Sequence[TurnGrade], conversation: Sequence[CheckResult]
) -> TurnError | None:
    """A check that could not be evaluated is trouble of ours, not a verdict on the agent."""
    held = [check for turn in turns for check in turn.checks]
    held.extend(check for turn in turns for f in turn.follow_ups for check in f.checks)
    broken = next((result for result in [*held, *conversation] if result.error), None)
    if broken is None:
        return None
    message = f"the check `{broken.name}` could not be evaluated: {broken.error}"
    return TurnError(kind=broken.error_kind or "judge", message=message)


def _as_grade(
    judged: Judged, turns: list[TurnGrade], verdict: Verdict, error: TurnError | None
) -> Grade:
    case, record = judged.case, judged.record
    # What other trials' records count is not counted again.
    own = [step for turn in record.turns if turn.held_by is None for step in turn.executed()]
    return Grade(
        suite=record.suite,
        case_id=record.case_id,
        title=case.title,
        tags=case.tags,
        engine=record.engine.profile,
        variant=record.variant,
        trial=record.trial,
        attempt=record.attempt,
        status=verdict.status,
        status_apart=apart_from_skill_use(judged, error),
        score=verdict.score,
        reason="; ".join([verdict.reason, *given_up(record)]),
        execution_mode=record.execution_mode,
        session_id=record.session_id,
        turns=turns,
        assertions=list(judged.conversation),
        usage=total_usage(step.usage for step in own),
        cost_usd=total_cost(step.cost_usd for step in own),
        duration_ms=record.duration_ms,
        error=error.model_dump() if error else None,
        simulator=simulated(record),
        warnings=_warnings(record),
    )


def _warnings(record: Record) -> list[str]:
    """What makes this result less comparable than others."""
    warnings = []
    if record.engine.isolation == "shared":
        warnings.append(
            "isolation: shared: the user's own skills, memory and settings were within reach"
        )
    if record.execution_mode == "single_shot":
        warnings.append("single_shot: the engine cannot resume, so all turns were one message")
    return warnings
