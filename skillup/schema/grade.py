"""The grade: verdict and score, derived from a record, and derivable again from it alone."""

from collections.abc import Sequence
from typing import Annotated, Any, Literal

from pydantic import Field

from skillup.frozen import frozen
from skillup.schema.base import Model, Stored, optional

GRADE_VERSION = "skillup.grade/2"

BASELINE = "without_skill"
"""The variant that shows what the agent does by itself: its failures are none of the skill."""

CaseStatus = Literal["PASS", "FAIL", "ERROR", "SKIP"]
CheckRole = Literal[
    "assertion", "post_condition", "expect", "success", "failure", "judge", "simulator"
]
"""What a check is part of; `judge`: what a script or an agent said of the whole conversation;
`simulator`: what the simulated user said, which decides nothing."""

EvidencePart = Literal["response", "call", "result", "file"]
SimulationEnd = Literal["completed", "impossible", "limit"]


class EvidenceSpan(Stored):
    """A piece of the record that a check's result rests on.

    `start` and `end` count characters (Unicode code points) of the text as it is recorded, before
    any normalisation, `end` excluded; both are 0 where the whole call, result or file is meant.
    """

    turn: int = Field(description="The turn's number, from 1.")
    follow_up: int | None = optional(
        "Its place among the turn's follow-ups, from 0; None: the turn itself."
    )
    part: EvidencePart = Field(
        description="The answer, a tool call or its result, a file after the turn or a deleted one."
    )
    item: int | None = optional("Of a call or result: its place in the `transcript`, from 0.")
    argument: str | None = optional(
        "Of a call: the argument, by the engine's own name; dotted if nested."
    )
    path: str | None = optional("Of a file: its path in the workspace.")
    start: int = Field(0, description="The first character.")
    end: int = Field(0, description="The first character after it.")


Relaxation = Literal["case", "(?m)", "(?s)", "dash", "quote", "space", "unicode"]


class NearMatch(Stored):
    """Where a text or pattern that was not found nearly stands."""

    wanted: str = Field(description="What was looked for.")
    is_pattern: bool = Field(False, description="It is a regular expression.")
    matched: int = Field(description="Of `wanted`, the characters up to the first difference.")
    line: str = Field(description="The nearest line; of a long one, the surroundings.")
    at: int = Field(description="The first difference: a place in `line`, in characters.")
    spans: list[EvidenceSpan] = Field([], description="The same place in the record.")
    would_match: list[Relaxation] = Field(
        [], description="What would have made it match, all together: a flag, a lookalike ignored."
    )


class CheckResult(Stored):
    """What one check looked for, where, and what it found."""

    name: str = Field(description="The check, in one line.")
    kind: str = Field(description="Its key, such as `contains`.")
    passed: bool = Field(description="Whether it holds.")
    score: float = Field(description="0..1.")
    weight: float = Field(1.0, description="Its share of the score.")
    required: bool = Field(False, description="Whether nothing passes without it.")
    assertable: bool = Field(True, description="False: there was nothing to look at, so it fails.")
    evaluated: bool = Field(True, description="False: `expect` had failed before.")
    unknown: bool = Field(False, description="The judge could not tell; it is not assertable.")
    scope: str = Field("", description="Where: `turn 2`, `conversation`.")
    role: CheckRole = Field("assertion", description="What it is part of.")
    expected: str = Field("", description="What was looked for.")
    found: str = Field("", description="What was there, in words.")
    excerpt: str = Field("", description="The piece that decided, with its surroundings.")
    spans: list[EvidenceSpan] = Field([], description="The pieces that passed or failed it.")
    nearest: NearMatch | None = optional("Of a text or pattern that was not found.")
    skill: str | None = optional("Of `skill_used` and `skill_not_used`: the skill's name.")
    error: str | None = optional("The check itself could not be evaluated.")
    error_kind: Literal["template"] | None = optional("`template`: a name without a value.")
    notes: list[str] = Field([], description="What a reader should know of how it was judged.")
    votes: list[float] | None = optional("The score each time a judge was asked and could tell.")
    agreement: float | None = optional("The share of `votes` that say what the result says, 0..1.")
    answers: list[str] = Field([], description="The keys of the stored answers it rests on.")
    children: "list[CheckResult]" = Field([], description="Of a compound check.")


class Judging(Stored):
    """What asking judges took. It is not part of what the agent took."""

    calls: int = Field(0, description="Requests to judges, answered from the cache or not.")
    cached_calls: int = Field(0, description="Of these, answered from the cache: free.")
    models: list[str] = Field([], description="Who was asked, each once.")
    usage: dict[str, Any] | None = optional("Tokens; None: not known.")
    cost_usd: float | None = optional("None: not known.")


class Simulated(Stored):
    """The simulated user's share in a trial. It is no part of what the agent or judges took."""

    messages: int = Field(0, description="Messages that it wrote.")
    persona: str | None = optional("Which of the case's `personas` it was.")
    stop: SimulationEnd | None = optional("How it ended the conversation.")
    reason: str = Field("", description="What it said of the end.")
    fidelity: CheckResult | None = optional("Whether a judge found that it kept to its part.")
    models: list[str] = Field([], description="Who played it, each once.")
    usage: dict[str, Any] | None = optional("Tokens; None: not known.")
    cost_usd: float | None = optional("None: not known.")


class FollowUpGrade(Stored):
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


class TurnGrade(Stored):
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
        return deciding(self.checks, self.follow_ups, self.passed_on)


def deciding(
    own: Sequence[CheckResult], follow_ups: Sequence[FollowUpGrade], passed_on: str | None
) -> list[CheckResult]:
    """What a turn stands or falls by; a follow-up that passed replaces all but required checks."""
    if passed_on is None:
        later = (check for one in follow_ups for check in one.checks)
        return [*own, *(check for check in later if check.required and not check.passed)]
    healed = [check for one in follow_ups if one.label == passed_on for check in one.checks]
    return [*(check for check in own if check.required), *healed]


class Grade(Stored):
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


StopKind = Literal["max_fail", "max_cost_usd", "max_tokens", "time_limit", "quota", "interrupted"]


class Stop(Model):
    """Why a run ended before all of its trials were run."""

    kind: StopKind = Field(description="What was reached.")
    message: str = Field(description="What happened, in one line.")


# The result of a run, and what its trials say together: how often cases pass, what the skill adds.

RESULT_VERSION = "skillup.result/2"


class Rate(Model):
    """How often something passed, and where its true rate lies (Wilson's interval)."""

    passed: int = Field(description="Passes.")
    judged: int = Field(description="Verdicts.")
    rate: float | None = Field(description="passed / judged; None if there is no verdict.")
    low: float | None = Field(description="The interval's lower end.")
    high: float | None = Field(description="The interval's upper end.")


class Overall(Rate):
    """All trials with the skill; where cases have several, the interval is one over cases."""

    cases: int = Field(description="The cases that have a verdict.")


@frozen
class AtK:
    """The chances that k trials have."""

    # No model: there are two and more for each trial, and a model takes seven times the memory.
    k: Annotated[int, Field(description="So many trials, from 1 to those run.")]
    pass_at_k: Annotated[float, Field(description="That at least one passes.")]
    pass_hat_k: Annotated[float, Field(description="That all pass (pass^k).")]


class Decision(Model):
    """What a sequential test said of a case's pass rate (`--until-decided`)."""

    verdict: Literal["above", "below", "undecided"] = Field(description="Against the threshold.")
    threshold: float = Field(description="The pass rate it was compared with.")
    error_rate: float = Field(description="The chance of a wrong `above`, and of a wrong `below`.")
    trials: int = Field(description="Verdicts that it took.")
    saved: int = Field(description="Trials that were planned and not needed.")


class CaseReliability(Model):
    """All trials of one case, on one engine, in one variant."""

    suite: str = Field(description="The suite's name.")
    case_id: str = Field(description="The case's id.")
    engine: str = Field(description="The profile's name.")
    variant: str = Field(description="With the skill, or without.")
    rate: Rate = Field(description="Of its verdicts.")
    error: int = Field(0, description="Trials that ended as ERROR: not run.")
    skip: int = Field(0, description="Trials that were skipped.")
    not_run: int = Field(0, description="Trials that were planned and not run, nor saved.")
    flaky: bool = Field(False, description="Some of its verdicts are passes and some are not.")
    at_k: list[AtK] = Field([], description="For each k up to its verdicts.")
    decision: Decision | None = optional("Of `--until-decided`.")


class Difference(Model):
    """The mean of a quantity with and without the skill, over the cases that know it in both."""

    with_skill: float = Field(description="The mean over cases of their trials' mean.")
    without_skill: float = Field(description="The same, without the skill.")
    difference: float = Field(description="with_skill - without_skill.")
    low: float | None = optional("The interval's lower end; None: too few cases.")
    high: float | None = optional("The interval's upper end.")
    cases: int = Field(description="The cases it is over.")


class Uplift(Model):
    """What the skill adds: paired by case, trials with the skill against those without."""

    suite: str = Field(description="The suite's name.")
    engine: str = Field(description="The profile's name.")
    case_id: str | None = optional("None: all cases of the suite together.")
    with_skill: Rate = Field(description="With the skill.")
    without_skill: Rate = Field(description="Without.")
    uplift: float | None = Field(description="The difference of pass rates; None: not known.")
    low: float | None = optional("The uplift's interval, lower end.")
    high: float | None = optional("The uplift's interval, upper end.")
    p: float | None = optional("The chance of such a difference if there is none.")
    cases: int = Field(0, description="The cases it is over: those with a verdict in both.")
    not_counted: list[str] = Field([], description="Cases that cannot be compared.")
    turns: Difference | None = optional("Turns run; None: not known in both.")
    tokens: Difference | None = optional("Input and output tokens.")
    cost_usd: Difference | None = optional("The agent's cost.")
    duration_ms: Difference | None = optional("Time.")


class Triggering(Model):
    """Whether a skill is used when it should be, and only then.

    From checks `skill_used` and `skill_not_used` that name it, in trials with the skill.
    """

    suite: str = Field(description="The suite's name.")
    engine: str = Field(description="The profile's name.")
    skill: str = Field(description="The skill's name.")
    used_rightly: int = Field(description="Should be used, and was (true positives).")
    not_used_wrongly: int = Field(description="Should be used, and was not (false negatives).")
    used_wrongly: int = Field(description="Should not be used, and was (false positives).")
    not_used_rightly: int = Field(description="Should not be used, and was not (true negatives).")
    precision: float | None = Field(description="Of its uses, the share that was right.")
    recall: float | None = Field(description="Of the times it should be used, the share it was.")
    f1: float | None = Field(description="The harmonic mean of both.")
    distractors: list[str] = Field([], description="Skills that were installed beside it.")


class EngineColumn(Model):
    """One engine (profile) over all cases of a suite, with the skill."""

    suite: str = Field(description="The suite's name.")
    engine: str = Field(description="The profile's name.")
    rate: Rate = Field(description="Of all verdicts.")
    error: int = Field(0, description="Trials that ended as ERROR.")
    score: float | None = optional("The mean score of its verdicts.")
    turns: float | None = optional("Turns run, per trial with a verdict.")
    tokens: float | None = optional("Input and output, per trial where it is known.")
    cost_usd: float | None = optional("Per trial where it is known.")
    duration_ms: float | None = optional("Per trial with a verdict.")


class Analysis(Model):
    """All of it; lists are in the order of the plan."""

    confidence: float = Field(0.95, description="Of every interval.")
    overall: Overall | None = optional("All trials with the skill; None: no trial has a verdict.")
    cases: list[CaseReliability] = Field([], description="Each case.")
    uplift: list[Uplift] = Field([], description="Of each suite and engine, then of its cases.")
    triggering: list[Triggering] = Field([], description="Each skill.")
    engines: list[EngineColumn] = Field([], description="Each engine.")


class Counts(Model):
    """Trials by status; `pass_rate` leaves out errors and skips, None if nothing is left."""

    total: int = Field(description="Trials that were run.")
    passed: int = Field(alias="pass", description="Status PASS.")
    fail: int = Field(description="Status FAIL.")
    error: int = Field(description="Status ERROR.")
    skip: int = Field(description="Status SKIP.")
    pass_rate: float | None = Field(description="pass / (pass + fail).")


class Summary(Counts):
    """Counts over the trials with the skill; those without it stand apart, sums are over all."""

    baseline: Counts | None = optional("Of the trials without the skill; None: the run has none.")
    duration_ms: int = Field(description="The whole run.")
    cost_usd: float | None = Field(description="Of all trials; None: not known.")
    usage: dict[str, Any] = Field(description="Tokens of all trials.")
    judging: Judging | None = optional("What judges took in all trials.")


class RunResult(Model):
    """`result.json`."""

    schema_version: str = Field(RESULT_VERSION, description="The version of this format.")
    run_id: str = Field(description="The run's id.")
    started_at: str = Field(description="UTC, ISO 8601.")
    ran: str = Field("", description="Suites, skills, engines and judges, in one line for people.")
    finished: bool = Field(description="False: some trials were not run.")
    summary: Summary = Field(description="Counts and sums.")
    cases: Sequence[Grade] = Field(description="Every grade, in the order of the plan.")
    not_run: list[str] = Field([], description="Trials that were not run.")
    stopped: Stop | None = optional("Why trials were not run; None: nothing ended the run early.")
    not_needed: list[str] = Field([], description="Trials that `--until-decided` saved.")
    warnings: list[str] = Field([], description="What a reader of the whole run should know.")
    analysis: Analysis | None = optional("What all trials together say.")
