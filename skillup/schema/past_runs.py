"""What `skillup compare --json` and `skillup trends --json` print. What is not known is null."""

from typing import Literal

from skillup.schema.base import Stored

COMPARISON_VERSION = "skillup.comparison/2"
HISTORY_VERSION = "skillup.history/2"

ChangeKind = Literal["model", "cli", "skill", "case", "profile", "skillup", "host", "commit"]


class RunHead(Stored):
    """A run, by name."""

    run_id: str  #: Its id.
    started_at: str  #: UTC, ISO 8601.


class TallyData(Stored):
    """A case's trials, counted; means are over those with a verdict."""

    state: str  #: pass, fail, mixed; or why there is no verdict.
    passed: int  #: Verdicts PASS.
    judged: int  #: Verdicts.
    errors: int  #: ERROR: no verdict.
    not_started: int  #: Planned, and not run.
    skipped: int  #: SKIP.
    score: float | None = None  #: The mean, 0..1.
    cost_usd: float | None = None  #: The mean of those that tell it.
    duration_ms: float | None = None  #: The mean.
    reason: str  #: Why the first that did not pass did not.


class CaseRef(Stored):
    """A case, as trials of it are told apart from others."""

    suite: str  #: The suite's name.
    case_id: str  #: The case's id.
    engine: str  #: The profile's name.
    variant: str  #: With the skill, or without.


class MeasuredData(Stored):
    """One side of a statement."""

    value: float  #: A share of trials; or a trial's median, in ms or USD.
    trials: int  #: How many it is of.
    count: int  #: That passed, or had an error.


class StatementData(Stored):
    """That a case, or all cases of a suite together, got worse."""

    kind: str  #: fewer_passes, slower, dearer, more_errors.
    suite: str  #: The suite's name.
    key: CaseRef | None = None  #: The case; null: all cases of the suite together.
    p: float  #: Corrected over all that is said of a night.
    significant: bool  #: At the comparison's confidence.
    before: MeasuredData  #: In the reference.
    after: MeasuredData  #: In the newest night, or nights.
    increase: float | None = None  #: 0.2: 20 % more.
    nights: int  #: How many newest nights `after` is of.
    since: str | None = None  #: The run in which a case that stays red became red.


class Change(Stored):
    """Something else was used than in the run `changed_since`; empty: not at all."""

    kind: ChangeKind  #: What.
    name: str  #: Of which profile, skill or case.
    before: str  #: In the reference.
    after: str  #: In the run.
    files: list[str] = []  #: Of a skill: the files that differ.


class CaseData(CaseRef):
    """A case in both."""

    #: regressed, recovered, fewer_passes, more_passes, same, not_run, skipped, only_in_a, only_in_b
    change: str
    quarantined: bool  #: Counts for no gate.
    a: TallyData  #: In the reference, all its nights together.
    b: TallyData  #: In the run.


class GateData(Stored):
    """A gate, and what was found."""

    suite: str  #: The suite's name; empty: all suites.
    gate: str  #: Its key.
    limit: float  #: As given.
    found: float | None = None  #: Null: not known, and then it fails.
    passed: bool  #: Whether it is met.
    finding: str  #: What was found, in words.
    cases: list[CaseRef]  #: Those for which it failed.


class ComparisonData(Stored):
    """What `skillup compare --json` prints."""

    schema_version: str = COMPARISON_VERSION  #: The version of this format.
    changed: list[Change]  #: What was used; a model first.
    changed_since: RunHead | None = None  #: The last night before what is worse now got worse.
    summary: str  #: In a sentence or two.
    why: str  #: Why the reference is what it is.
    reference: list[RunHead]  #: Its nights, the oldest first; or none.
    run: RunHead  #: What is compared with it.
    finished: bool  #: Whether all of the run's trials were run.
    confidence: float  #: That a night in which nothing changed says nothing.
    statements: list[StatementData]  #: Significant ones first.
    cases: list[CaseData]  #: All of the run; then those it no longer has.
    time_increase: float | None = None  #: Of the median case: 0.2 means 20 % more.
    cost_increase: float | None = None  #: Of the median case.
    gates: list[GateData]  #: Each gate of each suite.
    gates_passed: bool  #: Whether all are met.


class SinceData(Stored):
    """Where a case began to fail."""

    first: RunHead  #: With which it regressed; else since it last passed.
    last_pass: RunHead | None = None  #: The last run in which it passed.
    runs: int  #: With a verdict, from the first on.
    statement: StatementData | None = None  #: If it regressed, and has not recovered.


class RunTally(TallyData):
    """A case in one run."""

    run_id: str  #: The run.


class RateData(TallyData):
    """Over all runs that are shown."""

    pass_rate: float | None = None  #: passed / judged.
    interval: tuple[float, float] | None = None  #: Of the pass rate, at 95 %.


class CaseHistoryData(RateData, CaseRef):
    """A case over runs."""

    failing_since: SinceData | None = None  #: If it failed in its last run, or regressed.
    runs: list[RunTally]  #: The oldest first.


class SuiteRun(RunHead):
    """A suite in one run."""

    state: str  #: pass, fail, mixed, error, …
    changed: list[Change]  #: Since the run before it here.


class SuiteHistoryData(RateData):
    """A suite over runs."""

    suite: str  #: Its name.
    runs: list[SuiteRun]  #: The oldest first.
    cases: list[CaseHistoryData]  #: Its cases.


class HistoryData(Stored):
    """What `skillup trends --json` prints."""

    schema_version: str = HISTORY_VERSION  #: The version of this format.
    suites: list[SuiteHistoryData]  #: Sorted by name.
