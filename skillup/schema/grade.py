"""The grade: verdict and score, derived from a record, and derivable again from it alone."""

from collections.abc import Sequence
from typing import Annotated, Any, Literal

from pydantic import Field

from skillup.dataclass import frozen
from skillup.schema.base import Model, Stored

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

    turn: int  #: The turn's number, from 1.
    follow_up: int | None = None  #: Its place among the turn's, from 0; None: the turn itself.
    part: EvidencePart  #: The answer, a tool call or its result, a file after the turn or deleted.
    item: int | None = None  #: Of a call or result: its place in the `transcript`, from 0.
    argument: str | None = None  #: Of a call: by the engine's own name; dotted if nested.
    path: str | None = None  #: Of a file: its path in the workspace.
    start: int = 0  #: The first character.
    end: int = 0  #: The first character after it.


Relaxation = Literal["case", "(?m)", "(?s)", "dash", "quote", "space", "unicode"]


class NearMatch(Stored):
    """Where a text or pattern that was not found nearly stands."""

    wanted: str  #: What was looked for.
    is_pattern: bool = False  #: It is a regular expression.
    matched: int  #: Of `wanted`, the characters up to the first difference.
    line: str  #: The nearest line; of a long one, the surroundings.
    at: int  #: The first difference: a place in `line`, in characters.
    spans: list[EvidenceSpan] = []  #: The same place in the record.
    would_match: list[Relaxation] = []  #: All together: a flag, a lookalike ignored.


class CheckResult(Stored):
    """What one check looked for, where, and what it found."""

    name: str  #: The check, in one line.
    kind: str  #: Its key, such as `contains`.
    passed: bool  #: Whether it holds.
    score: float  #: 0..1.
    weight: float = 1.0  #: Its share of the score.
    required: bool = False  #: Whether nothing passes without it.
    assertable: bool = True  #: False: there was nothing to look at, so it fails.
    evaluated: bool = True  #: False: `expect` had failed before.
    unknown: bool = False  #: The judge could not tell; it is not assertable.
    scope: str = ""  #: Where: `turn 2`, `conversation`.
    role: CheckRole = "assertion"  #: What it is part of.
    expected: str = ""  #: What was looked for.
    found: str = ""  #: What was there, in words.
    excerpt: str = ""  #: The piece that decided, with its surroundings.
    spans: list[EvidenceSpan] = []  #: The pieces that passed or failed it.
    nearest: NearMatch | None = None  #: Of a text or pattern that was not found.
    skill: str | None = None  #: Of `skill_used` and `skill_not_used`: the skill's name.
    error: str | None = None  #: The check itself could not be evaluated.
    error_kind: Literal["template"] | None = None  #: `template`: a name without a value.
    notes: list[str] = []  #: What a reader should know of how it was judged.
    votes: list[float] | None = None  #: The score each time a judge was asked and could tell.
    agreement: float | None = None  #: The share of `votes` that say what the result says, 0..1.
    answers: list[str] = []  #: The keys of the stored answers it rests on.
    children: "list[CheckResult]" = []  #: Of a compound check.


class Judging(Stored):
    """What asking judges took. It is not part of what the agent took."""

    calls: int = 0  #: Requests to judges, answered from the cache or not.
    cached_calls: int = 0  #: Of these, answered from the cache: free.
    models: list[str] = []  #: Who was asked, each once.
    usage: dict[str, Any] | None = None  #: Tokens; None: not known.
    cost_usd: float | None = None  #: None: not known.


class Simulated(Stored):
    """The simulated user's share in a trial. It is no part of what the agent or judges took."""

    messages: int = 0  #: Messages that it wrote.
    persona: str | None = None  #: Which of the case's `personas` it was.
    stop: SimulationEnd | None = None  #: How it ended the conversation.
    reason: str = ""  #: What it said of the end.
    fidelity: CheckResult | None = None  #: Whether a judge found that it kept to its part.
    models: list[str] = []  #: Who played it, each once.
    usage: dict[str, Any] | None = None  #: Tokens; None: not known.
    cost_usd: float | None = None  #: None: not known.


class FollowUpGrade(Stored):
    """A follow-up as users see it: sent because a check beside it had failed."""

    label: str  #: `first follow-up`, `second follow-up`, …, within its turn.
    asked_by: list[int]  #: The place of its check among the assertions.
    content: str  #: The message that was sent.
    response: str  #: The agent's answer.
    passed: bool  #: Its checks passed, or those of one of its own follow-ups.
    score: float  #: 0..1.
    checks: list[CheckResult] = []  #: What was asked of the answer.
    usage: dict[str, Any] | None = None  #: Tokens of this answer alone.
    cost_usd: float | None = None  #: Of this answer alone; None: not known.
    duration_ms: int = 0  #: From the message to the end of the answer.


class TurnGrade(Stored):
    """A turn as users see it in `result.json`."""

    turn_number: int  #: From 1.
    status: str  #: completed, failed, skipped or error.
    reason: str = ""  #: Why it was skipped or failed.
    source: str  #: Who wrote it.
    content: str  #: The message as sent.
    response: str  #: The agent's first answer.
    score: float  #: 0..1.
    post_condition_passed: bool | None  #: None: not evaluated.
    session_verified: bool | None  #: None: there were no earlier turns.
    captures: dict[str, str] = {}  #: Variables taken out of the turn.
    counted_by: str | None = None  #: The job that counts a shared turn.
    checks: list[CheckResult] = []  #: The gate's and the assertions' results.
    follow_ups: list[FollowUpGrade] = []  #: Messages of failed checks.
    passed_on: str | None = None  #: The follow-up whose checks passed.
    usage: dict[str, Any] | None = None  #: Follow-ups included.
    cost_usd: float | None = None  #: Follow-ups included.
    duration_ms: int = 0  #: Follow-ups included.
    error: dict[str, Any] | None = None  #: Why it could not be run: kind, message, evidence.

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

    schema_version: str = GRADE_VERSION  #: The version of this format.
    suite: str  #: The suite's name.
    case_id: str  #: The case's id.
    engine: str  #: The profile's name.
    variant: str  #: With the skill, or without.
    trial: int  #: Which repetition, from 1.
    attempt: int = 1  #: Above 1: an earlier attempt met an error and was retried.
    status: CaseStatus  #: PASS, FAIL, ERROR or SKIP.
    status_apart: CaseStatus | Literal["NONE"] | None = None  #: Without checks of the skill's use.
    score: float  #: 0..1.
    reason: str  #: The verdict's ground, in one line.
    execution_mode: str  #: How turns were sent.
    session_id: str | None  #: The session of the conversation.
    turns: list[TurnGrade] = []  #: In order.
    assertions: list[CheckResult] = []  #: Of the conversation.
    usage: dict[str, Any] | None = None  #: Tokens of all turns; None: not known.
    cost_usd: float | None = None  #: Of all turns; None: not known.
    duration_ms: int  #: The whole trial.
    judging: Judging | None = None  #: What judges took; None: none was asked.
    simulator: Simulated | None = None  #: The simulated user's share.
    error: dict[str, Any] | None = None  #: Of an ERROR: kind, message, evidence.
    title: str | None = None  #: The case's title.
    tags: list[str] = []  #: The case's tags.
    warnings: list[str] = []  #: What a reader of the grade should know.


StopKind = Literal["max_fail", "max_cost_usd", "max_tokens", "time_limit", "quota", "interrupted"]


class Stop(Model):
    """Why a run ended before all of its trials were run."""

    kind: StopKind  #: What was reached.
    message: str  #: What happened, in one line.


# The result of a run, and what its trials say together: how often cases pass, what the skill adds.

RESULT_VERSION = "skillup.result/2"


class Rate(Model):
    """How often something passed, and where its true rate lies (Wilson's interval)."""

    passed: int  #: Passes.
    judged: int  #: Verdicts.
    rate: float | None  #: passed / judged; None if there is no verdict.
    low: float | None  #: The interval's lower end.
    high: float | None  #: The interval's upper end.


class Overall(Rate):
    """All trials with the skill; where cases have several, the interval is one over cases."""

    cases: int  #: The cases that have a verdict.


@frozen
class AtK:
    """The chances that k trials have."""

    # No model: there are two and more for each trial, and a model takes seven times the memory.
    k: Annotated[int, Field(description="So many trials, from 1 to those run.")]
    pass_at_k: Annotated[float, Field(description="That at least one passes.")]
    pass_hat_k: Annotated[float, Field(description="That all pass (pass^k).")]


class Decision(Model):
    """What a sequential test said of a case's pass rate (`--until-decided`)."""

    verdict: Literal["above", "below", "undecided"]  #: Against the threshold.
    threshold: float  #: The pass rate it was compared with.
    error_rate: float  #: The chance of a wrong `above`, and of a wrong `below`.
    trials: int  #: Verdicts that it took.
    saved: int  #: Trials that were planned and not needed.


class CaseReliability(Model):
    """All trials of one case, on one engine, in one variant."""

    suite: str  #: The suite's name.
    case_id: str  #: The case's id.
    engine: str  #: The profile's name.
    variant: str  #: With the skill, or without.
    rate: Rate  #: Of its verdicts.
    error: int = 0  #: Trials that ended as ERROR: not run.
    skip: int = 0  #: Trials that were skipped.
    not_run: int = 0  #: Trials that were planned and not run, nor saved.
    flaky: bool = False  #: Some of its verdicts are passes and some are not.
    at_k: list[AtK] = []  #: For each k up to its verdicts.
    decision: Decision | None = None  #: Of `--until-decided`.


class Difference(Model):
    """The mean of a quantity with and without the skill, over the cases that know it in both."""

    with_skill: float  #: The mean over cases of their trials' mean.
    without_skill: float  #: The same, without the skill.
    difference: float  #: with_skill - without_skill.
    low: float | None = None  #: The interval's lower end; None: too few cases.
    high: float | None = None  #: The interval's upper end.
    cases: int  #: The cases it is over.


class Uplift(Model):
    """What the skill adds: paired by case, trials with the skill against those without."""

    suite: str  #: The suite's name.
    engine: str  #: The profile's name.
    case_id: str | None = None  #: None: all cases of the suite together.
    with_skill: Rate  #: With the skill.
    without_skill: Rate  #: Without.
    uplift: float | None  #: The difference of pass rates; None: not known.
    low: float | None = None  #: The uplift's interval, lower end.
    high: float | None = None  #: The uplift's interval, upper end.
    p: float | None = None  #: The chance of such a difference if there is none.
    cases: int = 0  #: The cases it is over: those with a verdict in both.
    not_counted: list[str] = []  #: Cases that cannot be compared.
    turns: Difference | None = None  #: Turns run; None: not known in both.
    tokens: Difference | None = None  #: Input and output tokens.
    cost_usd: Difference | None = None  #: The agent's cost.
    duration_ms: Difference | None = None  #: Time.


class Triggering(Model):
    """Whether a skill is used when it should be, and only then.

    From checks `skill_used` and `skill_not_used` that name it, in trials with the skill.
    """

    suite: str  #: The suite's name.
    engine: str  #: The profile's name.
    skill: str  #: The skill's name.
    used_rightly: int  #: Should be used, and was (true positives).
    not_used_wrongly: int  #: Should be used, and was not (false negatives).
    used_wrongly: int  #: Should not be used, and was (false positives).
    not_used_rightly: int  #: Should not be used, and was not (true negatives).
    precision: float | None  #: Of its uses, the share that was right.
    recall: float | None  #: Of the times it should be used, the share it was.
    f1: float | None  #: The harmonic mean of both.
    distractors: list[str] = []  #: Skills that were installed beside it.


class EngineColumn(Model):
    """One engine (profile) over all cases of a suite, with the skill."""

    suite: str  #: The suite's name.
    engine: str  #: The profile's name.
    rate: Rate  #: Of all verdicts.
    error: int = 0  #: Trials that ended as ERROR.
    score: float | None = None  #: The mean score of its verdicts.
    turns: float | None = None  #: Turns run, per trial with a verdict.
    tokens: float | None = None  #: Input and output, per trial where it is known.
    cost_usd: float | None = None  #: Per trial where it is known.
    duration_ms: float | None = None  #: Per trial with a verdict.


class Analysis(Model):
    """All of it; lists are in the order of the plan."""

    confidence: float = 0.95  #: Of every interval.
    overall: Overall | None = None  #: All trials with the skill; None: no trial has a verdict.
    cases: list[CaseReliability] = []  #: Each case.
    uplift: list[Uplift] = []  #: Of each suite and engine, then of its cases.
    triggering: list[Triggering] = []  #: Each skill.
    engines: list[EngineColumn] = []  #: Each engine.


class Counts(Model):
    """Trials by status; `pass_rate` leaves out errors and skips, None if nothing is left."""

    total: int  #: Trials that were run.
    passed: int = Field(alias="pass")  #: Status PASS.
    fail: int  #: Status FAIL.
    error: int  #: Status ERROR.
    skip: int  #: Status SKIP.
    pass_rate: float | None  #: pass / (pass + fail).


class Summary(Counts):
    """Counts over the trials with the skill; those without it stand apart, sums are over all."""

    baseline: Counts | None = None  #: Of the trials without the skill; None: the run has none.
    duration_ms: int  #: The whole run.
    cost_usd: float | None  #: Of all trials; None: not known.
    usage: dict[str, Any]  #: Tokens of all trials.
    judging: Judging | None = None  #: What judges took in all trials.


class RunResult(Model):
    """`result.json`."""

    schema_version: str = RESULT_VERSION  #: The version of this format.
    run_id: str  #: The run's id.
    started_at: str  #: UTC, ISO 8601.
    ran: str = ""  #: Suites, skills, engines and judges, in one line for people.
    finished: bool  #: False: some trials were not run.
    summary: Summary  #: Counts and sums.
    cases: Sequence[Grade]  #: Every grade, in the order of the plan.
    not_run: list[str] = []  #: Trials that were not run.
    stopped: Stop | None = None  #: Why trials were not run; None: nothing ended the run early.
    not_needed: list[str] = []  #: Trials that `--until-decided` saved.
    warnings: list[str] = []  #: What a reader of the whole run should know.
    analysis: Analysis | None = None  #: What all trials together say.
