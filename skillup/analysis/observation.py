"""One trial, boiled down to what the analysis counts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import NamedTuple

from skillup.history.runs import VERDICTS, CaseKey
from skillup.schema.grade import CaseStatus, CheckResult, Grade, TurnGrade

# What a trial's checks say of skills: should it have been used, and was it?

_USED, _NOT_USED = "skill_used", "skill_not_used"


class SkillUse(NamedTuple):
    """One observation: of one trial, one skill, and what was expected of it there."""

    skill: str
    expected: bool
    """Whether it should be used."""
    used: bool
    """Whether it was, everywhere that was expected; or anywhere that it was not."""


def skill_uses(grade: Grade) -> Iterator[SkillUse]:
    """A trial is one observation for each skill and expectation, however many checks there are.

    Turns that several trials share are evidence once: in the trial that counts them.
    """
    seen: dict[tuple[str, bool], bool] = {}
    spelled: dict[str, str] = {}
    for skill, expected, used in _all_of(grade):
        name = skill.casefold()
        spelled.setdefault(name, skill)
        so_far = seen.get((name, expected))
        if so_far is None:
            seen[name, expected] = used
        else:
            seen[name, expected] = so_far and used if expected else so_far or used
    for (name, expected), used in seen.items():
        yield SkillUse(spelled[name], expected, used)


def _all_of(grade: Grade) -> Iterator[SkillUse]:
    for turn in grade.turns:
        if turn.held_by is None:
            # Not only what decided: a follow-up that heals a turn is not what the user asked first.
            asked = [turn.checks, *(follow_up.checks for follow_up in turn.follow_ups)]
            yield from _expectations(chain.from_iterable(asked), wanted=True)
    for check in grade.assertions:
        if check.role == "failure":
            # Reports turn a failure rule's result round: it passes where its pattern is absent.
            as_found = check.model_copy(update={"passed": not check.passed})
            yield from _expectations([as_found], wanted=False)
        else:
            yield from _expectations([check], wanted=True)


def _expectations(checks: Iterable[CheckResult], *, wanted: bool) -> Iterator[SkillUse]:
    """`wanted`: each of `checks` is to hold; else none of them is."""
    for check in checks:
        if check.kind in (_USED, _NOT_USED):
            if check.skill and check.assertable and check.error is None:
                about_use = check.kind == _USED
                yield SkillUse(
                    check.skill,
                    about_use == wanted,
                    about_use == check.passed,
                )
        elif check.kind == "none_of":
            if wanted or len(check.children) == 1:
                yield from _expectations(check.children, wanted=not wanted)
        elif check.kind in ("all_of", "any_of"):
            # One of several alternatives is not expected by itself.
            each_is_told = wanted == (check.kind == "all_of")
            if each_is_told or len(check.children) == 1:
                yield from _expectations(check.children, wanted=wanted)


class ObservedTurn(NamedTuple):
    """A turn whose message was sent."""

    number: int
    passed: bool
    held_by: str | None
    """The job that counts it, where several trials share it; None: this one."""


@dataclass(frozen=True, slots=True)
class Observation:
    """What one trial shows."""

    key: CaseKey
    trial: int
    status: CaseStatus
    apart: bool | None
    """Whether it passed, apart from whether it used the skill under test; None: that says nothing
    of what the skill adds."""
    score: float
    turns: tuple[ObservedTurn, ...]
    tokens: int | None
    """Input and output; None: the engine did not tell both."""
    cost_usd: float | None
    duration_ms: int
    skills: tuple[SkillUse, ...]

    @property
    def is_verdict(self) -> bool:
        """PASS or FAIL; an error or a skip says nothing about the agent."""
        return self.status in VERDICTS

    @property
    def passed(self) -> bool:
        """Whether it passed."""
        return self.status == "PASS"

    @property
    def first_failed_turn(self) -> int | None:
        """The first turn of which something was not as it should be; None: there is none."""
        return next((turn.number for turn in self.turns if not turn.passed), None)


_VERDICT = {"PASS": True, "FAIL": False}


def observed(grade: Grade) -> Observation:
    """What counts of `grade`; a small value, so that grades need not be kept."""
    usage = grade.usage or {}
    sent, answered = usage.get("input_tokens"), usage.get("output_tokens")
    return Observation(
        key=CaseKey(grade.suite, grade.case_id, grade.engine, grade.variant),
        trial=grade.trial,
        status=grade.status,
        apart=_VERDICT.get(grade.status_apart or grade.status),
        score=grade.score,
        turns=tuple(
            ObservedTurn(turn.turn_number, _passed(turn), turn.held_by)
            for turn in grade.turns
            if turn.status not in ("skipped", "error")
        ),
        tokens=None if sent is None or answered is None else sent + answered,
        cost_usd=grade.cost_usd,
        duration_ms=grade.duration_ms,
        skills=tuple(skill_uses(grade)) if grade.status in VERDICTS else (),
    )


def _passed(turn: TurnGrade) -> bool:
    """It completed and all that was asked of it holds, however the case weighs that."""
    return turn.status == "completed" and all(check.passed for check in turn.deciding_checks())
