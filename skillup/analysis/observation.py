"""One trial, boiled down to what the analysis counts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from skillup.history.runs import VERDICTS, CaseKey
from skillup.schema.grade import CaseStatus, CheckResult, Grade


class SkillUse(NamedTuple):
    """One observation: of one trial, one skill, and what was expected of it there."""

    skill: str
    expected: bool  # Whether it should be used
    used: bool  # Whether it was, everywhere that was expected; or anywhere that it was not


def skill_uses(grade: Grade) -> Iterator[SkillUse]:
    """What a trial's checks say: should a skill have been used, and was it?

    A trial is one observation for each skill and expectation, however many checks there are. Turns
    that several trials share are evidence once: in the trial that counts them.
    """
    seen: dict[tuple[str, bool], SkillUse] = {}
    for use in _all_of(grade):
        key = (use.skill.casefold(), use.expected)
        known = seen.get(key, use)
        together = known.used and use.used if use.expected else known.used or use.used
        seen[key] = known._replace(used=together)
    spelled: dict[str, str] = {}
    for (name, _), use in seen.items():
        yield use._replace(skill=spelled.setdefault(name, use.skill))


def _all_of(grade: Grade) -> Iterator[SkillUse]:
    for turn in grade.turns:
        if turn.held_by is None:
            # Not only what decided: a follow-up that heals a turn is not what the user asked first.
            for checks in (turn.checks, *(follow_up.checks for follow_up in turn.follow_ups)):
                yield from _expectations(checks, required=True)
    for check in grade.assertions:
        if check.role == "failure":
            # Reports turn a failure rule's result round: it passes where its pattern is absent.
            as_found = check.model_copy(update={"passed": not check.passed})
            yield from _expectations([as_found], required=False)
        else:
            yield from _expectations([check], required=True)


def _expectations(checks: Iterable[CheckResult], *, required: bool) -> Iterator[SkillUse]:
    """`required`: each of `checks` has to pass; else none of them may."""
    for check in checks:
        if check.kind in ("skill_used", "skill_not_used"):
            if check.skill and check.assertable and check.error is None:
                of_use = check.kind == "skill_used"
                yield SkillUse(check.skill, of_use == required, of_use == check.passed)
        elif check.kind == "none_of":
            if required or len(check.children) == 1:
                yield from _expectations(check.children, required=not required)
        elif check.kind in ("all_of", "any_of") and (
            # One of several alternatives is not expected by itself.
            required == (check.kind == "all_of") or len(check.children) == 1
        ):
            yield from _expectations(check.children, required=required)


class ObservedTurn(NamedTuple):
    """A turn whose message was sent."""

    number: int
    passed: bool  # It completed and all that was asked of it holds, however the case weighs that
    held_by: str | None  # The job that counts it, where several trials share it; None: this one


class Observation(NamedTuple):
    """What one trial shows; a small value, so that grades need not be kept."""

    key: CaseKey
    trial: int
    status: CaseStatus
    apart: bool | None
    """Whether it passed, apart from whether it used the skill under test; None: that says nothing
    of what the skill adds."""
    score: float
    turns: tuple[ObservedTurn, ...]
    tokens: int | None  # Input and output; None: the engine did not report both
    cost_usd: float | None
    duration_ms: int
    skills: tuple[SkillUse, ...]

    @property
    def is_verdict(self) -> bool:
        """PASS or FAIL; an error or a skip says nothing about the agent."""
        return self.status in VERDICTS

    @property
    def passed(self) -> bool:
        return self.status == "PASS"

    @property
    def first_failed_turn(self) -> int | None:
        """The first turn of which something was not as it should be; None: there is none."""
        return next((turn.number for turn in self.turns if not turn.passed), None)


def observed(grade: Grade) -> Observation:
    usage = grade.usage or {}
    sent, answered = usage.get("input_tokens"), usage.get("output_tokens")
    turns = []
    for turn in grade.turns:
        if turn.status not in ("skipped", "error"):
            passed = all(check.passed for check in turn.deciding_checks())
            passed = passed and turn.status == "completed"
            turns.append(ObservedTurn(turn.turn_number, passed, turn.held_by))
    return Observation(
        key=CaseKey(grade.suite, grade.case_id, grade.engine, grade.variant),
        trial=grade.trial,
        status=grade.status,
        apart={"PASS": True, "FAIL": False}.get(grade.status_apart or grade.status),
        score=grade.score,
        turns=tuple(turns),
        tokens=None if sent is None or answered is None else sent + answered,
        cost_usd=grade.cost_usd,
        duration_ms=grade.duration_ms,
        skills=tuple(skill_uses(grade)) if grade.status in VERDICTS else (),
    )
