"""One record in, one grade out: design §4's rules for status and score."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from skillup.checks import CheckContext, evaluate, evaluate_set
from skillup.checks.scoring import aggregate, weighted_mean
from skillup.judges.rules import judge_by_rules
from skillup.judges.turns import grade_turn
from skillup.judges.usage import total_cost, total_usage
from skillup.judges.verdict import Verdict, decide
from skillup.schema.case import Case
from skillup.schema.grade import CheckResult, Grade, TurnGrade
from skillup.schema.record import FileState, Record, TurnError


def grade_record(
    record: Record, read_file: Callable[[FileState], bytes | None], *, case: Case | None = None
) -> Grade:
    """The grade of `record`, by the case as it was run or by an edited `case`.

    Pure: the same record and case always give the same grade.
    """
    case = case or Case.model_validate(record.case)
    context = CheckContext(record, None, read_file)
    wanted = case.input.all_turns()
    turns = [
        grade_turn(
            turn,
            wanted[turn.turn_number - 1] if turn.turn_number <= len(wanted) else None,
            context,
        )
        for turn in record.turns
    ]
    conversation, judged = _conversation_checks(case, context)
    score = _score(case, turns, conversation)
    error = record.first_error() or _check_error(turns, conversation)
    verdict = decide(case, record, turns, conversation, judged, score, error)
    return _as_grade(case, record, verdict, turns, conversation, error)


def _conversation_checks(case: Case, context: CheckContext) -> tuple[list[CheckResult], list[str]]:
    """Checks of the conversation as a whole, and why a judge (if any) said no."""
    results: list[CheckResult] = []
    if case.expect is not None:
        gate = evaluate_set(case.expect, context, role="expect")
        results.extend(result.model_copy(update={"required": True}) for result in gate)
    results.extend(evaluate(check, context) for check in case.assertions)
    refusals: list[str] = []
    if all(result.passed for result in results if result.role == "expect"):
        for judge in case.all_judges():
            if judge.type in (None, "rule_based"):
                verdict = judge_by_rules(judge, context)
                results.extend(verdict.results)
                if not verdict.passed:
                    refusals.append(verdict.reason)
    return results, refusals


def _score(case: Case, turns: Sequence[TurnGrade], conversation: Sequence[CheckResult]) -> float:
    """Turns and conversation; a case that is one prompt has no turns to speak of."""
    scores: list[float] = []
    if case.input.prompt is None:
        scores.extend(turn.score for turn in turns)
        # A turn that was never reached counts as a skipped one.
        scores.extend(0.0 for _ in range(len(case.input.all_turns()) - len(turns)))
    elif any(turn.status != "completed" for turn in turns) or not turns:
        scores.append(0.0)
    if conversation:
        scores.append(weighted_mean(conversation))
    return round(aggregate(scores, case.aggregation or "mean"), 6)


def _check_error(
    turns: Sequence[TurnGrade], conversation: Sequence[CheckResult]
) -> TurnError | None:
    """A check that could not be evaluated is trouble of ours, not a verdict on the agent."""
    held = [check for turn in turns for check in turn.checks]
    held.extend(check for turn in turns for f in turn.follow_ups for check in f.checks)
    everything = [*held, *conversation]
    broken = next((result for result in everything if result.error), None)
    if broken is None:
        return None
    message = f"the check `{broken.name}` could not be evaluated: {broken.error}"
    return TurnError(kind="judge", message=message)


def _as_grade(
    case: Case,
    record: Record,
    verdict: Verdict,
    turns: list[TurnGrade],
    conversation: list[CheckResult],
    error: TurnError | None,
) -> Grade:
    return Grade(
        suite=record.suite,
        case_id=record.case_id,
        title=case.title,
        tags=case.tags,
        engine=record.engine.profile,
        variant=record.variant,
        trial=record.trial,
        status=verdict.status,
        score=verdict.score,
        reason=verdict.reason,
        execution_mode=record.execution_mode,
        session_id=record.session_id,
        turns=turns,
        assertions=conversation,
        usage=total_usage(step.usage for turn in record.turns for step in turn.executed()),
        cost_usd=total_cost(step.cost_usd for turn in record.turns for step in turn.executed()),
        duration_ms=record.duration_ms,
        error=error.model_dump() if error else None,
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
