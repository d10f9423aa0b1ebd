"""One record in, one grade out; the rules are those of docs/verdicts.md."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any, Literal

from skillup.checks.context import CheckContext, ReadFile, in_words
from skillup.checks.evaluate import (
    aggregate,
    evaluate,
    evaluate_set,
    evaluate_turn,
    reaches,
    speaks_for_it,
    unmet,
    weighted_mean,
)
from skillup.dataclass import frozen
from skillup.judges.evaluate import (
    Judge,
    PendingJudgements,
    UsageTracker,
    blank_result,
    fidelity_check,
)
from skillup.judges.evaluate import evaluate as evaluate_judged
from skillup.load.model import all_checks
from skillup.schema.case import Case, PostCondition, Turn
from skillup.schema.grade import CaseStatus, CheckResult, Grade, Simulated, TurnGrade, deciding
from skillup.schema.judge import JudgeConfig
from skillup.schema.record import Record, TurnError, TurnRecord, joined, total_cost, total_usage
from skillup.schema.suite import fidelity_of, lead_of
from skillup.trial.session import not_sent


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
    shortened = _up_to_the_gate(case, context)
    if shortened is not case:
        case, context = shortened, replace(context, record=as_written(record, shortened))
    written = dict(enumerate(case.input.all_turns(), start=1))
    turns = [_grade_turn(turn, written.get(turn.turn_number), context) for turn in record.turns]
    present = {turn.turn_number for turn in context.record.turns}
    missing = []
    for number in (n for n in range(1, (written_turns(case) or 0) + 1) if n not in present):
        text = written[number].content or written[number].respond or ""
        turn = not_sent(number, text, f"turn {number} was not run")
        missing.append(_grade_turn(turn, written[number], context))
    conversation = _conversation_checks(case, context, pending)
    judged = Judged(case, record, turns[: len(context.record.turns)], missing, conversation)
    departed = fidelity_check(record, case) if ask is not None else None
    fidelity = evaluate(departed, context, role="simulator") if departed else None
    departures = _departures(fidelity)
    error = _error_of(record, turns, conversation)
    if error is None and departures and fidelity_of(case) == "error":
        error = TurnError(kind="judge", message=departures[0])
    status, score, reason = decide(judged, error)
    # What other trials' records count is not counted again.
    own = [step for turn in record.turns if turn.counted_by is None for step in turn.executed()]
    modes = (record.engine.isolation, record.execution_mode)
    same = ("suite", "case_id", "variant", "trial", "attempt", "execution_mode", "session_id")
    return Grade(
        **{name: getattr(record, name) for name in same},
        title=case.title,
        tags=case.tags,
        engine=record.engine.profile,
        status=status,
        status_apart=apart_from_skill_use(judged, error),
        score=score,
        reason=reason + _given_up(record),
        turns=turns,
        assertions=conversation,
        usage=total_usage(step.usage for step in own),
        cost_usd=total_cost(step.cost_usd for step in own),
        duration_ms=record.duration_ms,
        error=error.model_dump() if error else None,
        simulator=_simulated(record, fidelity),
        warnings=[*(_WARNINGS[mode] for mode in modes if mode in _WARNINGS), *departures],
    )


_WARNINGS = {
    "shared": "isolation: shared: the user's own skills, memory and settings were within reach",
    "single_shot": "single_shot: the engine cannot resume, so all turns were one message",
}

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
    checks = written.checks() if written is not None else []
    results, follow_ups, passed_on = evaluate_turn(checks, turn, context)
    decided = deciding([*gate, *results], follow_ups, passed_on)
    executed = list(turn.executed()) if turn.follow_ups else (turn,)
    return TurnGrade(
        **{name: getattr(turn, name) for name in _OF_THE_TURN},
        score=weighted_mean(decided) if turn.status == "completed" else 0.0,
        post_condition_passed=all(result.passed for result in gate) if gate else None,
        checks=[*gate, *results],
        follow_ups=follow_ups,
        passed_on=passed_on,
        usage=total_usage([step.usage for step in executed]),
        cost_usd=total_cost([step.cost_usd for step in executed]),
        duration_ms=sum([step.duration_ms for step in executed]),
        error=turn.error.model_dump() if turn.error else None,
    )


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
            found = found or [blank_result(str(judge.type), "judge", error=why)]
        results.extend(result.model_copy(update={"required": judge.required}) for result in found)
    return results


def _by_rules(judge: JudgeConfig, context: CheckContext) -> list[CheckResult]:
    """Failure rules, which outrank success rules, then those.

    A failure rule's result is turned round: it passes when its pattern is absent. That weighs
    nothing, since it speaks for nothing. One that could not be evaluated does not pass, and weighs.
    """
    failure = []
    for check in judge.failure:
        result = evaluate(check, context, role="failure", negated=True)
        absent = result.assertable and result.error is None and not result.passed
        turned = {
            "passed": absent,
            "score": float(absent),
            "weight": 0.0 if absent else result.weight,
            "name": f"not ({result.name})",
            "expected": f"not: {result.expected}",
        }
        failure.append(result.model_copy(update=turned))
    success = [evaluate(check, context, role="success") for check in judge.success]
    if not success and judge.otherwise == "pass" and all(rule.passed for rule in failure):
        found = f"failure rules: {len(failure)}; none matches"
        about = {"name": "no rule is broken", "expected": "no failure rule matches", "found": found}
        success = [blank_result("rule_based", "judge", passed=True, score=1.0, **about)]
    return [*failure, *success]


# The verdict (docs/verdicts.md): ERROR over FAIL over SKIP over PASS, and why, in one line.


Verdict = tuple[CaseStatus, float, str]
"""Status, score, and why."""


@frozen
class Judged:
    case: Case
    record: Record
    turns: Sequence[TurnGrade]  # Those of the case, or all that a simulated user led
    missing: Sequence[TurnGrade]  # Those that the record lacks, as if skipped
    conversation: Sequence[CheckResult]  # Of gate, checks and judges

    def deciding(self) -> list[tuple[str, CheckResult]]:
        """All results that the case passes or fails by, and where each stands."""
        turns = [*self.turns, *self.missing]
        found = [(f"turn {t.turn_number}: ", c) for t in turns for c in t.deciding_checks()]
        return [*found, *(("", check) for check in self.conversation)]


def decide(judged: Judged, error: TurnError | None) -> Verdict:
    """The first rule that applies."""
    case, record = judged.case, judged.record
    if error is not None:
        return "ERROR", 0.0, f"{error.kind}: {error.message}"
    if record.skipped is not None:
        return "SKIP", 0.0, record.skipped
    score, deciding = _reported_score(judged), judged.deciding()
    failed = [(where, check) for where, check in deciding if unmet([check])]
    closed = next((turn for turn in judged.turns if _closed(turn)), None)
    for where, check in failed:
        # After a gate that ended the conversation, what looked at nothing is what SKIP says.
        gate = check.role == "post_condition"
        if check.required and not gate and (check.assertable or closed is None):
            return "FAIL", score, f"{where}{in_words(check.name, check.found)}"
    if closed is not None:
        check = next(c for c in closed.checks if c.role == "post_condition" and not c.passed)
        found = in_words(check.name, check.found)
        why = f"turn {closed.turn_number}: post-condition not met: {found}"
        condition = case.input.all_turns()[closed.turn_number - 1].post_condition
        if condition is not None and condition.on_fail == "fail":
            return "FAIL", score, why
        return "SKIP", 0.0, f"{why} (on_fail: skip_remaining)"
    if not deciding:
        return "FAIL", 0.0, "nothing was checked: there is no evidence to pass on"
    if (short := _falls_short(judged, deciding, bool(failed))) is not None:
        if failed:
            (where, check), more = failed[0], len(failed) - 1
            short = f"{where}{in_words(check.name, check.found)}"
            short += f" (and {more} more)" if more else ""
        return "FAIL", score, short
    passed, checks = sum(check.passed for _, check in deciding), len(deciding)
    reason = f"{passed} of {checks} {'check' if checks == 1 else 'checks'} passed"
    healed = [f"turn {t.turn_number} ({t.passed_on})" for t in judged.turns if t.passed_on]
    return "PASS", score, reason + (f"; passed on {', '.join(healed)}" if healed else "")


def _reported_score(judged: Judged) -> float:
    """Over turns and conversation; a turn without checks is 1, one that was not run 0."""
    case, scores = judged.case, [turn.score for turn in judged.turns]
    if case.input.turns is None:  # no turn has checks of its own
        complete = judged.turns and all(turn.status == "completed" for turn in judged.turns)
        scores = [] if complete else [0.0]
    else:
        # In a single shot the turns were one message: only those with checks lack an answer.
        one = judged.record.execution_mode == "single_shot"
        scores += [0.0 for turn in judged.missing if turn.checks or not one]
    if judged.conversation:
        scores.append(weighted_mean(judged.conversation))
    return round(aggregate(scores, case.aggregation or "mean"), 6)


def _falls_short(
    judged: Judged, deciding: Sequence[tuple[str, CheckResult]], failed: bool
) -> str | None:
    """Why it is no PASS: no evidence, a turn that was not run, or too low a score; None: it is.

    Without a `pass_threshold` every check has to pass, or the score of what was checked to be full:
    a graded check, such as `similar` from 0.8, passes with less than its full score.
    """
    if not speaks_for_it(check for _, check in deciding):
        return "no check of a weight above 0 passed: there is no evidence to pass on"
    turn = next((turn for turn in judged.turns if turn.status != "completed"), None)
    if turn is None and judged.record.execution_mode != "single_shot":
        turn = next(iter(judged.missing), None)
    if turn is not None:
        return turn.reason or f"turn {turn.turn_number} was not run"
    threshold = judged.case.pass_threshold
    if threshold is None and not failed:
        return None
    scores = [
        weighted_mean(turn.deciding_checks())
        for turn in [*judged.turns, *judged.missing]
        if any(check.weight for check in turn.deciding_checks())
    ]
    if any(check.weight for check in judged.conversation):
        scores.append(weighted_mean(judged.conversation))
    score = aggregate(scores, judged.case.aggregation or "mean")
    least = 1.0 if threshold is None else threshold
    return None if reaches(score, least) else f"score {score:.2f} < {least:.2f}"


def _closed(turn: TurnGrade) -> bool:
    """Whether its gate was evaluated and failed; that of a turn never sent was not."""
    return turn.post_condition_passed is False and turn.status != "skipped"


# The verdict without checks of whether the skill under test was used (Grade.status_apart). Those of
# distractors stay: they are installed in both variants.

_OF_SKILLS = ("skill_used", "skill_not_used")


def apart_from_skill_use(
    judged: Judged, error: TurnError | None
) -> CaseStatus | Literal["NONE"] | None:
    """None: the same verdict; `NONE`: nothing is left that could decide."""
    kinds = {key for _, check, _ in all_checks(judged.case) for key, _ in check.given()}
    if kinds.isdisjoint(_OF_SKILLS):
        return None
    beside = {s.name.casefold() for s in judged.record.skills if s.role == "distractor"}

    def rest(checks: Sequence[CheckResult]) -> list[CheckResult]:
        return [kept for check in checks if (kept := _apart(check, beside)) is not None]

    def rest_of(turn: TurnGrade) -> TurnGrade:
        follow_ups = [f.model_copy(update={"checks": rest(f.checks)}) for f in turn.follow_ups]
        return turn.model_copy(update={"checks": rest(turn.checks), "follow_ups": follow_ups})

    left = replace(
        judged,
        turns=[rest_of(turn) for turn in judged.turns],
        missing=[rest_of(turn) for turn in judged.missing],
        conversation=rest(judged.conversation),
    )
    if left == judged:
        return None
    deciding = [check for _, check in left.deciding()]
    # What a gate about the skill kept from being asked nobody knows.
    asked = all(check.evaluated for check in deciding) or any(
        check.role == "expect" and not check.passed for check in deciding
    )
    closed = [turn for turn in left.turns if _closed(turn)]
    ended = any(all(c.passed for c in t.checks if c.role == "post_condition") for t in closed)
    if ended or not asked or not any(check.weight for check in deciding):
        return "NONE"
    return decide(left, error)[0]


def _apart(check: CheckResult, beside: Collection[str]) -> CheckResult | None:
    """`check` without what it asks about the use of skills that are not `beside` the tested one."""
    if check.kind in _OF_SKILLS:
        return check if (check.skill or "").casefold() in beside else None
    if check.kind not in ("all_of", "any_of", "none_of"):
        return check
    left = [kept for child in check.children if (kept := _apart(child, beside)) is not None]
    if check.children and not left:
        return None
    if left == check.children or check.kind == "any_of" or check.role == "failure":
        return check
    every = check.kind == "all_of"
    passed = all(c.passed for c in left) if every else not any(c.passed for c in left)
    score = weighted_mean(left) if every else float(passed)
    return check.model_copy(update={"children": left, "passed": passed, "score": score})


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


def _departures(fidelity: CheckResult | None) -> list[str]:
    """What a reader should know of how the simulated user kept to its part."""
    if fidelity is None:
        return []
    if fidelity.error is not None:
        return [f"whether the simulated user kept to its part is not known: {fidelity.error}"]
    left = [(one, "may have left" if one.unknown else "left") for one in fidelity.children]
    said = "the simulated user {} its part in {}: {}"
    return [said.format(word, one.name, one.found) for one, word in left if not one.passed]


def _simulated(record: Record, fidelity: CheckResult | None) -> Simulated | None:
    """The simulated user's share in the trial; None if nobody played the user."""
    turns = [turn for turn in record.turns if turn.source == "simulator"]
    end = record.simulated_end
    if not turns and end is None:
        return None
    # What is shared with a fork's parent is counted there.
    parts = [turn.simulator for turn in turns if turn.counted_by is None]
    infos = [i for i in [*parts, end.info if end is not None else None] if i is not None]
    led = (record.case.get("input") or {}).get("conversation") or {}
    return Simulated(
        messages=sum(turn.started_at is not None for turn in turns),
        persona=(led.get("persona") or {}).get("name"),
        stop=end.stop if end is not None else None,
        reason=end.reason if end is not None else "",
        fidelity=fidelity,
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
