"""The result of a run, and what its trials say together: how often cases pass, what the skill adds.

Derived from the grades alone, and derivable again. Rates are over verdicts (PASS and FAIL) only.
The arithmetic of every number, and its source, is in ``docs/statistics.md``.
"""

from typing import Any, Literal

from pydantic import Field

from skillup.schema.base import Model, optional
from skillup.schema.grade import Grade, Judging, Stop

RESULT_VERSION = "skillup.result/2"


class Rate(Model):
    """How often something passed, and where its true rate lies (Wilson's interval)."""

    passed: int = Field(description="Passes.")
    judged: int = Field(description="Verdicts.")
    rate: float | None = Field(description="passed / judged; None if there is no verdict.")
    low: float | None = Field(description="The interval's lower end.")
    high: float | None = Field(description="The interval's upper end.")


class Overall(Rate):
    """All trials with the skill under test together.

    Trials of one case are alike, so where cases have several the interval is one over cases.
    """

    cases: int = Field(description="The cases that have a verdict.")


class AtK(Model):
    """The chances that k trials have."""

    k: int = Field(description="So many trials, from 1 to those run.")
    pass_at_k: float = Field(description="That at least one passes.")
    pass_hat_k: float = Field(description="That all pass (pass^k).")


class TurnReliability(Model):
    """One turn over all trials of a case that have a verdict.

    A turn passes if it completed, its gate opened and all of its checks passed.
    """

    turn_number: int = Field(description="From 1.")
    rate: Rate = Field(description="Of the times it was run; where trials share it, that is once.")
    at_k: list[AtK] = Field([], description="Of the turn, for each k.")
    first_failures: int = Field(description="Trials in which it is the first turn that failed.")
    unfailed: float | None = Field(
        description="The share of trials in which no turn up to this one failed."
    )


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
    turns: list[TurnReliability] = Field([], description="In order.")
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
    uplift: float | None = Field(
        description="The difference of pass rates; None: nothing to compare."
    )
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
    passed: int = Field(
        serialization_alias="pass", validation_alias="pass", description="Status PASS."
    )
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
    finished: bool = Field(description="False: some trials were not run.")
    summary: Summary = Field(description="Counts and sums.")
    cases: list[Grade] = Field(description="Every grade, in the order of the plan.")
    not_run: list[str] = Field([], description="Trials that were not run.")
    stopped: Stop | None = optional("Why trials were not run; None: nothing ended the run early.")
    not_needed: list[str] = Field([], description="Trials that `--until-decided` saved.")
    warnings: list[str] = Field([], description="What a reader of the whole run should know.")
    analysis: Analysis | None = optional("What all trials together say.")
