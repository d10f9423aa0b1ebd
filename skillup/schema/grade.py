"""The grade: verdict and score, derived from a record, and derivable again from it alone."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from skillup.schema.base import Model

GRADE_VERSION = "skillup.grade/1"
RESULT_VERSION = "skillup.result/1"

CaseStatus = Literal["PASS", "FAIL", "ERROR", "SKIP"]


class CheckResult(Model):
    """What one check looked for, where, and what it found."""

    name: str = Field(description="The check, in one line.")
    kind: str = Field(description="Its key, such as `contains`.")
    passed: bool
    score: float = Field(description="0..1.")
    weight: float = 1.0
    required: bool = False
    assertable: bool = Field(True, description="False: there was nothing to look at, so it fails.")
    scope: str = Field("", description="Where: `turn 2`, `conversation`.")
    role: Literal["assertion", "post_condition", "expect", "success", "failure"] = "assertion"
    expected: str = Field("", description="What was looked for.")
    found: str = Field("", description="What was there, in words.")
    excerpt: str = Field(
        "", description="The matching (or offending) piece, with its surroundings."
    )
    error: str | None = Field(None, description="The check itself could not be evaluated.")
    children: list[CheckResult] = Field(default_factory=list, description="Of a compound check.")


class FollowUpGrade(Model):
    """A follow-up as users see it: sent because a check beside it had failed."""

    label: str = Field(description="`first follow-up`, `second follow-up`, …, within its turn.")
    asked_by: list[int] = Field(description="The place of its check among the assertions.")
    content: str
    response: str
    passed: bool = Field(description="Its checks passed, or those of one of its own follow-ups.")
    score: float
    checks: list[CheckResult] = Field(default_factory=list)
    usage: dict[str, Any] | None = None
    cost_usd: float | None = None
    duration_ms: int = 0


class TurnGrade(Model):
    """A turn as users see it in `result.json`."""

    turn_number: int
    status: str
    reason: str = ""
    source: str
    content: str
    response: str
    score: float
    post_condition_passed: bool | None
    session_verified: bool | None
    captures: dict[str, str] = Field(default_factory=dict)
    checks: list[CheckResult] = Field(default_factory=list)
    follow_ups: list[FollowUpGrade] = Field(default_factory=list)
    passed_on: str | None = Field(
        None, description="`first follow-up`, …: whose checks the turn passed on; None: its own."
    )
    usage: dict[str, Any] | None = Field(None, description="Follow-ups included.")
    cost_usd: float | None = Field(None, description="Follow-ups included.")
    duration_ms: int = Field(0, description="Follow-ups included.")
    error: dict[str, Any] | None = None

    def deciding_checks(self) -> list[CheckResult]:
        """The gate's checks, and those assertions that the turn stands or falls by."""
        if self.passed_on is None:
            return self.checks
        gate = [check for check in self.checks if check.role == "post_condition"]
        return gate + next(f.checks for f in self.follow_ups if f.label == self.passed_on)


class Grade(Model):
    """One trial's verdict: an element of `result.json`'s `cases`."""

    schema_version: str = GRADE_VERSION
    suite: str
    case_id: str
    engine: str
    variant: str
    trial: int
    status: CaseStatus
    score: float
    reason: str
    execution_mode: str
    session_id: str | None
    turns: list[TurnGrade] = Field(default_factory=list)
    assertions: list[CheckResult] = Field(default_factory=list)
    usage: dict[str, Any] | None = None
    cost_usd: float | None = None
    duration_ms: int
    error: dict[str, Any] | None = None
    title: str | None = None
    tags: list[str] = Field(default_factory=list)
    warnings: list[str] = Field(default_factory=list)


class Summary(Model):
    """Counts over all grades; `pass_rate` leaves out errors and skips, None if nothing is left."""

    total: int
    passed: int = Field(serialization_alias="pass", validation_alias="pass")
    fail: int
    error: int
    skip: int
    pass_rate: float | None
    duration_ms: int
    cost_usd: float | None
    usage: dict[str, Any]


class RunResult(Model):
    """`result.json`."""

    schema_version: str = RESULT_VERSION
    run_id: str
    started_at: str
    finished: bool = Field(description="False: some trials were not run.")
    summary: Summary
    cases: list[Grade]
    not_run: list[str] = Field(default_factory=list, description="Trials that were not held.")


CheckResult.model_rebuild()
