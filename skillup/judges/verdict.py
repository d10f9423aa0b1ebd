"""The verdict: ERROR over FAIL over SKIP over PASS, and one line that says why."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from skillup.checks.wording import in_words
from skillup.judges.written import written_turns
from skillup.schema.case import Case
from skillup.schema.grade import CaseStatus, CheckResult, TurnGrade
from skillup.schema.record import Record, TurnError


@dataclass(frozen=True, slots=True)
class Verdict:
    """What is said of the trial."""

    status: CaseStatus
    score: float
    reason: str


def decide(
    case: Case,
    record: Record,
    turns: Sequence[TurnGrade],
    conversation: Sequence[CheckResult],
    refusals: Sequence[str],
    score: float,
    error: TurnError | None,
) -> Verdict:
    """Apply design §4's order of precedence. `refusals` are the judges that said no, and why."""
    if error is not None:
        return Verdict("ERROR", 0.0, f"{error.kind}: {error.message}")
    if record.skipped is not None:
        return Verdict("SKIP", 0.0, record.skipped)
    failed = next((turn for turn in turns if turn.status == "failed"), None)
    if failed is not None:
        return Verdict("FAIL", score, f"turn {failed.turn_number}: {failed.reason}")
    unmet = [
        (f"turn {turn.turn_number}: ", check)
        for turn in turns
        for check in turn.deciding_checks()
        if not check.passed
    ]
    unmet.extend(("", check) for check in conversation if not check.passed)
    required = next((item for item in unmet if _fails_the_case(item[1], turns)), None)
    if required is not None:
        where, check = required
        return Verdict("FAIL", score, f"{where}{_why(check)}")
    gate = next((turn for turn in turns if _stood_in_the_way(turn)), None)
    if gate is not None:
        return _gated(case, gate, score)
    if refusals:
        return Verdict("FAIL", score, refusals[0])
    checks = sum(len(turn.deciding_checks()) for turn in turns) + len(conversation)
    if not checks:
        return Verdict("FAIL", 0.0, "nothing was checked: there is no evidence to pass on")
    missing = _not_held(case, record, turns)
    if missing is not None or _falls_short(case, turns, score, bool(unmet)):
        if unmet:
            where, check = unmet[0]
            more = f" (and {len(unmet) - 1} more)" if len(unmet) > 1 else ""
            return Verdict("FAIL", score, f"{where}{_why(check)}{more}")
        threshold = 1.0 if case.pass_threshold is None else case.pass_threshold
        return Verdict("FAIL", score, missing or f"score {score:.2f} < {threshold:.2f}")
    passed = checks - len(unmet)
    many = "check" if checks == 1 else "checks"
    reason = f"{passed} of {checks} {many} passed"
    helped = [f"turn {turn.turn_number} ({turn.passed_on})" for turn in turns if turn.passed_on]
    if helped:
        reason += f"; passed on {', '.join(helped)}"
    return Verdict("PASS", score, reason)


def _falls_short(case: Case, turns: Sequence[TurnGrade], score: float, unmet: bool) -> bool:
    """Whether the score is below what the case asks for.

    A case that asks for nothing asks that every check passes. One that is graded, such as `similar`
    from 0.8, passes with less than its full score: that is then enough.
    """
    if case.pass_threshold is not None:
        return score < case.pass_threshold
    held = all(turn.status == "completed" for turn in turns)
    whole = held and len(turns) >= len(case.input.all_turns())
    return score < 1.0 and (unmet or not whole)


def _not_held(case: Case, record: Record, turns: Sequence[TurnGrade]) -> str | None:
    """Which turn that the case writes down did not take place; None if all did.

    What was never asked is no success, however well the rest scored. That a gate has skipped the
    rest is another verdict; in a single shot all turns were one message.
    """
    if record.execution_mode == "single_shot":
        return None
    held = {turn.turn_number: turn for turn in turns}
    for number in range(1, (written_turns(case) or 0) + 1):
        turn = held.get(number)
        if turn is None:
            return f"turn {number} was not held"
        if turn.status == "skipped":
            return turn.reason or f"turn {number} was not held"
    return None


def _stood_in_the_way(turn: TurnGrade) -> bool:
    """Whether its gate was asked and did not open; that of a turn never sent was not asked."""
    return turn.post_condition_passed is False and turn.status != "skipped"


def _gated(case: Case, turn: TurnGrade, score: float) -> Verdict:
    """The gate's verdict, as the case says now: an edited case may ask another than was held."""
    unmet = next(c for c in turn.checks if c.role == "post_condition" and not c.passed)
    why = f"turn {turn.turn_number}: post-condition not met: {_why(unmet)}"
    wanted = case.input.all_turns()[turn.turn_number - 1].post_condition
    if wanted is not None and wanted.on_fail == "fail":
        return Verdict("FAIL", score, why)
    return Verdict("SKIP", 0.0, f"{why} (on_fail: skip_remaining)")


def _fails_the_case(check: CheckResult, turns: Sequence[TurnGrade]) -> bool:
    """A required check does; but where a gate has ended the conversation, only one with an answer.

    What the turns that were never held lack is just what SKIP says.
    """
    if not check.required or check.role == "post_condition":
        return False
    ended_early = any(map(_stood_in_the_way, turns))
    return check.assertable or not ended_early


def _why(check: CheckResult) -> str:
    """The check and what it found, on one line: what it found may be a whole diff."""
    return in_words(check.name, check.found)
