"""What `skillup compare --json` and `skillup trends --json` print. What is not known is null."""

from typing import Literal

from pydantic import Field

from skillup.schema.base import Stored, optional

COMPARISON_VERSION = "skillup.comparison/2"
HISTORY_VERSION = "skillup.history/2"

ChangeKind = Literal["model", "cli", "skill", "case", "profile", "skillup", "host", "commit"]


class RunHead(Stored):
    """A run, by name."""

    run_id: str = Field(description="Its id.")
    started_at: str = Field(description="UTC, ISO 8601.")


class TallyData(Stored):
    """A case's trials, counted; means are over those with a verdict."""

    state: str = Field(description="pass, fail, mixed; or why there is no verdict.")
    passed: int = Field(description="Verdicts PASS.")
    judged: int = Field(description="Verdicts.")
    errors: int = Field(description="ERROR: no verdict.")
    not_started: int = Field(description="Planned, and not run.")
    skipped: int = Field(description="SKIP.")
    score: float | None = optional("The mean, 0..1.")
    cost_usd: float | None = optional("The mean of those that tell it.")
    duration_ms: float | None = optional("The mean.")
    reason: str = Field(description="Why the first that did not pass did not.")


class CaseRef(Stored):
    """A case, as trials of it are told apart from others."""

    suite: str = Field(description="The suite's name.")
    case_id: str = Field(description="The case's id.")
    engine: str = Field(description="The profile's name.")
    variant: str = Field(description="With the skill, or without.")


class MeasuredData(Stored):
    """One side of a statement."""

    value: float = Field(description="A share of trials; or a trial's median, in ms or USD.")
    trials: int = Field(description="How many it is of.")
    count: int = Field(description="That passed, or had an error.")


class StatementData(Stored):
    """That a case, or all cases of a suite together, got worse."""

    kind: str = Field(description="fewer_passes, slower, dearer, more_errors.")
    suite: str = Field(description="The suite's name.")
    key: CaseRef | None = optional("The case; null: all cases of the suite together.")
    p: float = Field(description="Corrected over all that is said of a night.")
    significant: bool = Field(description="At the comparison's confidence.")
    before: MeasuredData = Field(description="In the reference.")
    after: MeasuredData = Field(description="In the newest night, or nights.")
    increase: float | None = optional("0.2: 20 % more.")
    nights: int = Field(description="How many newest nights `after` is of.")
    since: str | None = optional("The run in which a case that stays red became red.")


class Change(Stored):
    """Something else was used than in the run `changed_since`; empty: not at all."""

    kind: ChangeKind = Field(description="What.")
    name: str = Field(description="Of which profile, skill or case.")
    before: str = Field(description="In the reference.")
    after: str = Field(description="In the run.")
    files: list[str] = Field([], description="Of a skill: the files that differ.")


class CaseData(CaseRef):
    """A case in both."""

    change: str = Field(
        description="regressed, recovered, fewer_passes, more_passes, same, not_run, skipped, "
        "only_in_a or only_in_b."
    )
    quarantined: bool = Field(description="Counts for no gate.")
    a: TallyData = Field(description="In the reference, all its nights together.")
    b: TallyData = Field(description="In the run.")


class GateData(Stored):
    """A gate, and what was found."""

    suite: str = Field(description="The suite's name; empty: all suites.")
    gate: str = Field(description="Its key.")
    limit: float = Field(description="As given.")
    found: float | None = optional("Null: not known, and then it fails.")
    passed: bool = Field(description="Whether it is met.")
    finding: str = Field(description="What was found, in words.")
    cases: list[CaseRef] = Field(description="Those for which it failed.")


class ComparisonData(Stored):
    """What `skillup compare --json` prints."""

    schema_version: str = Field(COMPARISON_VERSION, description="The version of this format.")
    changed: list[Change] = Field(description="What was used; a model first.")
    changed_since: RunHead | None = optional("The last night before what is worse now got worse.")
    summary: str = Field(description="In a sentence or two.")
    why: str = Field(description="Why the reference is what it is.")
    reference: list[RunHead] = Field(description="Its nights, the oldest first; or none.")
    run: RunHead = Field(description="What is compared with it.")
    finished: bool = Field(description="Whether all of the run's trials were run.")
    confidence: float = Field(description="That a night in which nothing changed says nothing.")
    statements: list[StatementData] = Field(description="Significant ones first.")
    cases: list[CaseData] = Field(description="All of the run; then those it no longer has.")
    time_increase: float | None = optional("Of the median case: 0.2 means 20 % more.")
    cost_increase: float | None = optional("Of the median case.")
    gates: list[GateData] = Field(description="Each gate of each suite.")
    gates_passed: bool = Field(description="Whether all are met.")


class SinceData(Stored):
    """Where a case began to fail."""

    first: RunHead = Field(description="With which it regressed; else since it last passed.")
    last_pass: RunHead | None = optional("The last run in which it passed.")
    runs: int = Field(description="With a verdict, from the first on.")
    statement: StatementData | None = optional("If it regressed, and has not recovered.")


class RunTally(TallyData):
    """A case in one run."""

    run_id: str = Field(description="The run.")


class RateData(TallyData):
    """Over all runs that are shown."""

    pass_rate: float | None = optional("passed / judged.")
    interval: tuple[float, float] | None = optional("Of the pass rate, at 95 %.")


class CaseHistoryData(RateData, CaseRef):
    """A case over runs."""

    failing_since: SinceData | None = optional("If it failed in its last run, or regressed.")
    runs: list[RunTally] = Field(description="The oldest first.")


class SuiteRun(RunHead):
    """A suite in one run."""

    state: str = Field(description="pass, fail, mixed, error, …")
    changed: list[Change] = Field(description="Since the run before it here.")


class SuiteHistoryData(RateData):
    """A suite over runs."""

    suite: str = Field(description="Its name.")
    runs: list[SuiteRun] = Field(description="The oldest first.")
    cases: list[CaseHistoryData] = Field(description="Its cases.")


class HistoryData(Stored):
    """What `skillup trends --json` prints."""

    schema_version: str = Field(HISTORY_VERSION, description="The version of this format.")
    suites: list[SuiteHistoryData] = Field(description="Sorted by name.")
