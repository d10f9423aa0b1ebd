"""The form of the page's index, as `docs/reports.md` has it."""

from __future__ import annotations

from typing import Literal, NotRequired, TypedDict

from skillup.history.comparison import CaseState
from skillup.schema.grade import Analysis, Decision, Stop, Summary
from skillup.schema.record import TurnStatus

Status = Literal["PASS", "FAIL", "ERROR", "SKIP", "NOT_RUN", "NOT_NEEDED", "RUNNING", "WAITING"]


class RowTurn(TypedDict):
    status: TurnStatus
    ok: bool | None
    unjudged: NotRequired[bool]


class RowSimulator(TypedDict):
    messages: int
    cost_usd: float | None
    tokens: int | None
    models: list[str]


class OfRun(TypedDict):
    run_id: str
    started_at: str


class OfCase(TypedDict):
    suite: str
    case_id: str
    engine: str
    variant: str


class PageRow(OfCase):
    n: int
    job: str
    title: str | None
    tags: list[str]
    trial: int
    status: Status
    reason: str
    turns: list[RowTurn]
    flaky: bool
    score: float | None
    end: bool | None
    duration_ms: float | None
    cost_usd: float | None
    tokens: int | None
    error_kind: str | None
    branch_of: str | None
    simulator: RowSimulator | None


class PageEngine(TypedDict):
    profile: str
    adapter: str | None
    model: str | None
    version: str | None


class PageRunHead(OfRun):
    finished: bool
    running: bool
    stopped: Stop | None
    path: str
    engines: list[PageEngine]
    suites: list[str]
    skills: list[str]
    skillup_version: str | None


class RunMark(OfRun):
    passed: int
    judged: int
    error: int
    score: float | None


class PageFailingSince(OfRun):
    runs: int


class PageCaseHistory(OfCase):
    marks: list[RunMark]
    failing_since: PageFailingSince | None


class Decided(OfCase):
    decision: Decision


class Side(TypedDict):
    status: Status
    score: float | None
    passed: int
    judged: int
    reason: str
    n: int | None


class SideRow(OfCase):
    a: Side | None
    b: Side | None
    change: CaseState
    case_changed: bool
    how_sure: str


class SideRun(OfRun):
    path: str


class Sides(TypedDict):
    a: SideRun
    b: SideRun
    reference: str
    changed: list[str]
    summary: list[str]
    rows: list[SideRow]


class PageIndex(TypedDict):
    """A run: all but its conversations. `open`: of `skillup view`, the run to show first."""

    schema: str
    mode: Literal["report", "view"]
    run: PageRunHead
    summary: Summary
    analysis: Analysis | None
    deciding: list[str]
    decided: list[Decided]
    rows: list[PageRow]
    not_run: list[str]
    not_needed: list[str]
    warnings: list[str]
    history: list[PageCaseHistory] | None
    sides: Sides | None
    compared: list[str]
    open: NotRequired[str]
