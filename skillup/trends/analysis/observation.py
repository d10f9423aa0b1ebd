"""One trial, boiled down to what the analysis counts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from skillup.schema.grade import CaseStatus, Grade, TurnGrade
from skillup.trends.analysis.skill_uses import SkillUse, skill_uses
from skillup.trends.outcomes import VERDICTS, CaseKey


class HeldTurn(NamedTuple):
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
    turns: tuple[HeldTurn, ...]
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
            HeldTurn(turn.turn_number, _passed(turn), turn.held_by)
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
