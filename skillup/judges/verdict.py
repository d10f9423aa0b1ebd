"""The verdict (docs/verdicts.md): ERROR over FAIL over SKIP over PASS, and why, in one line."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Literal

from skillup.checks.context import in_words
from skillup.checks.evaluate import aggregate, reaches, speaks_for_it, unmet, weighted_mean
from skillup.frozen import frozen
from skillup.schema.case import Case
from skillup.schema.grade import CaseStatus, CheckResult, TurnGrade
from skillup.schema.record import Record, TurnError


@frozen
class Verdict:
    status: CaseStatus
    score: float
    reason: str


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
        return Verdict("ERROR", 0.0, f"{error.kind}: {error.message}")
    if record.skipped is not None:
        return Verdict("SKIP", 0.0, record.skipped)
    score, deciding = _reported_score(judged), judged.deciding()
    failed = [(where, check) for where, check in deciding if unmet([check])]
    closed = next((turn for turn in judged.turns if _closed(turn)), None)
    for where, check in failed:
        # After a gate that ended the conversation, what looked at nothing is what SKIP says.
        gate = check.role == "post_condition"
        if check.required and not gate and (check.assertable or closed is None):
            return Verdict("FAIL", score, f"{where}{in_words(check.name, check.found)}")
    if closed is not None:
        return _at_the_gate(case, closed, score)
    if not deciding:
        return Verdict("FAIL", 0.0, "nothing was checked: there is no evidence to pass on")
    if (short := _falls_short(judged, deciding, bool(failed))) is not None:
        if failed:
            (where, check), more = failed[0], len(failed) - 1
            short = f"{where}{in_words(check.name, check.found)}"
            short += f" (and {more} more)" if more else ""
        return Verdict("FAIL", score, short)
    passed, checks = sum(check.passed for _, check in deciding), len(deciding)
    reason = f"{passed} of {checks} {'check' if checks == 1 else 'checks'} passed"
    healed = [f"turn {t.turn_number} ({t.passed_on})" for t in judged.turns if t.passed_on]
    return Verdict("PASS", score, reason + (f"; passed on {', '.join(healed)}" if healed else ""))


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
        turn.score
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


def _at_the_gate(case: Case, turn: TurnGrade, score: float) -> Verdict:
    failed = next(c for c in turn.checks if c.role == "post_condition" and not c.passed)
    why = f"turn {turn.turn_number}: post-condition not met: {in_words(failed.name, failed.found)}"
    gate = case.input.all_turns()[turn.turn_number - 1].post_condition
    if gate is not None and gate.on_fail == "fail":
        return Verdict("FAIL", score, why)
    return Verdict("SKIP", 0.0, f"{why} (on_fail: skip_remaining)")


# The verdict without checks of whether the skill under test was used (Grade.status_apart). Those of
# distractors stay: they are installed in both variants.


def apart_from_skill_use(
    judged: Judged, error: TurnError | None
) -> CaseStatus | Literal["NONE"] | None:
    """None: the same verdict; `NONE`: nothing is left that could decide."""
    beside = {s.name.casefold() for s in judged.record.skills if s.role == "distractor"}

    def rest(checks: Sequence[CheckResult]) -> list[CheckResult]:
        return [kept for check in checks if (kept := _apart(check, beside)) is not None]

    def rest_of(turn: TurnGrade) -> TurnGrade:
        follow_ups = [f.model_copy(update={"checks": rest(f.checks)}) for f in turn.follow_ups]
        left = turn.model_copy(update={"checks": rest(turn.checks), "follow_ups": follow_ups})
        whole = turn.status == "completed"
        score = weighted_mean(left.deciding_checks()) if whole else turn.score
        return left.model_copy(update={"score": score})

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
    return decide(left, error).status


def _apart(check: CheckResult, beside: Collection[str]) -> CheckResult | None:
    """`check` without what it asks about the use of skills that are not `beside` the tested one."""
    if check.kind in ("skill_used", "skill_not_used"):
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
