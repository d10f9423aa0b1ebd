"""One record in, one grade out: design §4's rules for status and score."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from skillup.checks import CheckContext, evaluate, evaluate_set
from skillup.checks.scoring import aggregate, weighted_mean
from skillup.judges.ledger import Ledger, joined
from skillup.judges.opinions import judge_by_reading
from skillup.judges.rules import judge_by_rules
from skillup.judges.settling import Reader, settle
from skillup.judges.simulated import given_up, simulated
from skillup.judges.sitting import Sitting
from skillup.judges.turns import grade_turn
from skillup.judges.usage import total_cost, total_usage
from skillup.judges.verdict import Verdict, decide
from skillup.judges.written import as_written
from skillup.schema.case import Case
from skillup.schema.grade import CheckResult, Grade, TurnGrade
from skillup.schema.record import FileState, Record, TurnError


async def grade(
    record: Record,
    read_file: Callable[[FileState], bytes | None],
    reader: Reader,
    *,
    case: Case | None = None,
    ledger: Ledger | None = None,
) -> Grade:
    """:func:`grade_record` with `reader` to answer what rules cannot; `judging` is what it took.

    `ledger`: the account that it is written into, which is empty; default: one of its own.
    """
    ledger = ledger or Ledger()
    graded = await settle(
        lambda sitting: grade_record(record, read_file, case=case, sitting=sitting), reader, ledger
    )
    took = joined(record.judging, ledger.judging())
    return graded if took is None else graded.model_copy(update={"judging": took})


def grade_record(
    record: Record,
    read_file: Callable[[FileState], bytes | None],
    *,
    case: Case | None = None,
    sitting: Sitting | None = None,
) -> Grade:
    """The grade of `record`, by the case as it was run or by an edited `case`.

    Pure: the same record, case and answers in `sitting` always give the same grade. Without a
    sitting, what only a judge can evaluate is an ERROR.
    """
    case = case or Case.model_validate(record.case)
    if sitting is not None:
        sitting.case = case
    ask = sitting.ask if sitting is not None else None
    context = CheckContext(as_written(record, case), None, read_file, ask)
    wanted = case.input.all_turns()
    turns = [
        grade_turn(
            turn,
            wanted[turn.turn_number - 1] if 1 <= turn.turn_number <= len(wanted) else None,
            context,
        )
        for turn in record.turns
    ]
    conversation, judged = _conversation_checks(case, context, sitting)
    score = _score(case, turns, conversation)
    error = record.first_error() or _check_error(turns, conversation)
    verdict = decide(case, record, turns, conversation, judged, score, error)
    return _as_grade(case, record, verdict, turns, conversation, error)


def _conversation_checks(
    case: Case, context: CheckContext, sitting: Sitting | None
) -> tuple[list[CheckResult], list[str]]:
    """Checks of the conversation as a whole, and why a judge (if any) said no."""
    results: list[CheckResult] = []
    if case.expect is not None:
        results.extend(evaluate_set(case.expect, context, role="expect", required=True))
    results.extend(evaluate(check, context) for check in case.checks())
    refusals: list[str] = []
    if all(result.passed for result in results if result.role == "expect"):
        for number, judge in enumerate(case.all_judges()):
            if judge.type in (None, "rule_based"):
                verdict = judge_by_rules(judge, context)
            else:
                verdict = judge_by_reading(number, judge, context, sitting)
            results.extend(verdict.results)
            if not verdict.passed and judge.required:
                refusals.append(verdict.reason)
    return results, refusals


def _score(case: Case, turns: Sequence[TurnGrade], conversation: Sequence[CheckResult]) -> float:
    """Turns and conversation; only turns that the case writes down have checks to speak of."""
    scores: list[float] = []
    if case.input.turns is not None:
        scores.extend(turn.score for turn in turns[: len(case.input.turns)])
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
    return TurnError(kind=broken.error_kind or "judge", message=message)


def _as_grade(
    case: Case,
    record: Record,
    verdict: Verdict,
    turns: list[TurnGrade],
    conversation: list[CheckResult],
    error: TurnError | None,
) -> Grade:
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
        score=verdict.score,
        reason="; ".join([verdict.reason, *given_up(record)]),
        execution_mode=record.execution_mode,
        session_id=record.session_id,
        turns=turns,
        assertions=conversation,
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
