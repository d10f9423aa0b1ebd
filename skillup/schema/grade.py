"""The grade: verdict and score, derived from a record, and derivable again from it alone."""

from collections.abc import Sequence
from typing import Any, Literal

from pydantic import Field

from skillup.schema.base import Model, optional

GRADE_VERSION = "skillup.grade/2"

BASELINE = "without_skill"
"""The variant that shows what the agent does by itself: its failures are none of the skill."""

CaseStatus = Literal["PASS", "FAIL", "ERROR", "SKIP"]
CheckRole = Literal["assertion", "post_condition", "expect", "success", "failure", "judge"]
"""What a check is part of; `judge`: what a script or an agent said of the whole conversation."""


class EvidenceSpan(Model):
    """A piece of the record that a check's result rests on.

    `start` and `end` count characters (Unicode code points) of the text as it is recorded, before
    any normalisation, `end` excluded; both are 0 where the whole call, result or file is meant.
    """

    turn: int = Field(description="The turn's number, from 1.")
    follow_up: int | None = optional(
        "Its place among the turn's follow-ups, from 0; None: the turn itself."
    )
    part: Literal["response", "call", "result", "file"] = Field(
        description="The answer, a tool call or its result, a file after the turn or a deleted one."
    )
    item: int | None = optional(
        "Of a call or result: its place in the turn's `transcript`, from 0."
    )
    argument: str | None = optional(
        "Of a call: the argument, by the engine's own name; dotted if nested."
    )
    path: str | None = optional("Of a file: its path in the workspace.")
    start: int = Field(0, description="The first character.")
    end: int = Field(0, description="The first character after it.")


class CheckResult(Model):
    """What one check looked for, where, and what it found."""

    name: str = Field(description="The check, in one line.")
    kind: str = Field(description="Its key, such as `contains`.")
    passed: bool = Field(description="Whether it holds.")
    score: float = Field(description="0..1.")
    weight: float = Field(1.0, description="Its share of the score.")
    required: bool = Field(False, description="Whether nothing passes without it.")
    assertable: bool = Field(True, description="False: there was nothing to look at, so it fails.")
    evaluated: bool = Field(True, description="False: `expect` had failed before.")
    scope: str = Field("", description="Where: `turn 2`, `conversation`.")
    role: CheckRole = Field("assertion", description="What it is part of.")
    expected: str = Field("", description="What was looked for.")
    found: str = Field("", description="What was there, in words.")
    excerpt: str = Field("", description="The piece that decided, with its surroundings.")
    spans: list[EvidenceSpan] = Field([], description="The pieces that passed or failed it.")
    skill: str | None = optional("Of `skill_used` and `skill_not_used`: the skill's name.")
    error: str | None = optional("The check itself could not be evaluated.")
    error_kind: Literal["template"] | None = optional("`template`: a name without a value.")
    notes: list[str] = Field([], description="What a reader should know of how it was judged.")
    votes: list[float] | None = optional("The score each time a judge was asked.")
    agreement: float | None = optional("The share of `votes` that say what the result says, 0..1.")
    children: "list[CheckResult]" = Field([], description="Of a compound check.")


class Judging(Model):
    """What asking judges took. It is not part of what the agent took."""

    calls: int = Field(0, description="Requests to judges, answered from the cache or not.")
    cached_calls: int = Field(0, description="Of these, answered from the cache: free.")
    models: list[str] = Field([], description="Who was asked, each once.")
    usage: dict[str, Any] | None = optional("Tokens; None: not known.")
    cost_usd: float | None = optional("None: not known.")


class Simulated(Model):
    """The simulated user's share in a trial. It is no part of what the agent or judges took."""

    messages: int = Field(0, description="Messages that it wrote.")
    stop: Literal["completed", "impossible", "limit"] | None = optional(
        "How it ended the conversation."
    )
    reason: str = Field("", description="What it said of the end.")
    models: list[str] = Field([], description="Who played it, each once.")
    usage: dict[str, Any] | None = optional("Tokens; None: not known.")
    cost_usd: float | None = optional("None: not known.")


class FollowUpGrade(Model):
    """A follow-up as users see it: sent because a check beside it had failed."""

    label: str = Field(description="`first follow-up`, `second follow-up`, …, within its turn.")
    asked_by: list[int] = Field(description="The place of its check among the assertions.")
    content: str = Field(description="The message that was sent.")
    response: str = Field(description="The agent's answer.")
    passed: bool = Field(description="Its checks passed, or those of one of its own follow-ups.")
    score: float = Field(description="0..1.")
    checks: list[CheckResult] = Field([], description="What was asked of the answer.")
    usage: dict[str, Any] | None = optional("Tokens of this answer alone.")
    cost_usd: float | None = optional("Of this answer alone; None: not known.")
    duration_ms: int = Field(0, description="From the message to the end of the answer.")


class TurnGrade(Model):
    """A turn as users see it in `result.json`."""

    turn_number: int = Field(description="From 1.")
    status: str = Field(description="completed, failed, skipped or error.")
    reason: str = Field("", description="Why it was skipped or failed.")
    source: str = Field(description="Who wrote it.")
    content: str = Field(description="The message as sent.")
    response: str = Field(description="The agent's first answer.")
    score: float = Field(description="0..1.")
    post_condition_passed: bool | None = Field(description="None: not evaluated.")
    session_verified: bool | None = Field(description="None: there were no earlier turns.")
    captures: dict[str, str] = Field({}, description="Variables taken out of the turn.")
    counted_by: str | None = optional("The job that counts a shared turn.")
    checks: list[CheckResult] = Field([], description="The gate's and the assertions' results.")
    follow_ups: list[FollowUpGrade] = Field([], description="Messages of failed checks.")
    passed_on: str | None = optional("The follow-up whose checks passed.")
    usage: dict[str, Any] | None = optional("Follow-ups included.")
    cost_usd: float | None = optional("Follow-ups included.")
    duration_ms: int = Field(0, description="Follow-ups included.")
    error: dict[str, Any] | None = optional("Why it could not be run: kind, message, evidence.")

    def deciding_checks(self) -> list[CheckResult]:
        """The gate's checks, and those assertions that the turn stands or falls by."""
        follow_ups = [(follow_up.label, follow_up.checks) for follow_up in self.follow_ups]
        return deciding(self.checks, follow_ups, self.passed_on)


def deciding(
    own: Sequence[CheckResult],
    follow_ups: Sequence[tuple[str, Sequence[CheckResult]]],
    passed_on: str | None,
) -> list[CheckResult]:
    """The results that a turn stands or falls by, of its own and those of its follow-ups by label.

    What is required decides wherever it stands; a follow-up that passed replaces the rest.
    """
    if passed_on is None:
        failed = (c for _, checks in follow_ups for c in checks if c.required and not c.passed)
        return [*own, *failed]
    healed = next((checks for label, checks in follow_ups if label == passed_on), ())
    return [*(check for check in own if check.required), *healed]


class Grade(Model):
    """One trial's verdict: an element of `result.json`'s `cases`."""

    schema_version: str = Field(GRADE_VERSION, description="The version of this format.")
    suite: str = Field(description="The suite's name.")
    case_id: str = Field(description="The case's id.")
    engine: str = Field(description="The profile's name.")
    variant: str = Field(description="With the skill, or without.")
    trial: int = Field(description="Which repetition, from 1.")
    attempt: int = Field(1, description="Above 1: an earlier attempt met an error and was retried.")
    status: CaseStatus = Field(description="PASS, FAIL, ERROR or SKIP.")
    status_apart: CaseStatus | Literal["NONE"] | None = optional(
        "Without checks of whether the skill was used."
    )
    score: float = Field(description="0..1.")
    reason: str = Field(description="The verdict's ground, in one line.")
    execution_mode: str = Field(description="How turns were sent.")
    session_id: str | None = Field(description="The session of the conversation.")
    turns: list[TurnGrade] = Field([], description="In order.")
    assertions: list[CheckResult] = Field([], description="Of the conversation.")
    usage: dict[str, Any] | None = optional("Tokens of all turns; None: not known.")
    cost_usd: float | None = optional("Of all turns; None: not known.")
    duration_ms: int = Field(description="The whole trial.")
    judging: Judging | None = optional("What judges took; None: none was asked.")
    simulator: Simulated | None = optional("The simulated user's share.")
    error: dict[str, Any] | None = optional("Of an ERROR: kind, message, evidence.")
    title: str | None = optional("The case's title.")
    tags: list[str] = Field([], description="The case's tags.")
    warnings: list[str] = Field([], description="What a reader of the grade should know.")


class Stop(Model):
    """Why a run ended before all of its trials were run."""

    kind: Literal[
        "max_fail", "max_cost_usd", "max_tokens", "time_limit", "quota", "interrupted"
    ] = Field(description="What was reached.")
    message: str = Field(description="What happened, in one line.")
