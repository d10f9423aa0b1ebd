"""The form of the page's index, as `docs/reports.md` has it, and the same for TypeScript.

``python -m skillup.reports.html.page_data`` writes `viewer/dist/types.d.ts` anew; what a
conversation has beside what is copied of the record and the grade stands in `viewer/src/data.ts`.
"""

from __future__ import annotations

import types
from collections.abc import Container
from pathlib import Path
from typing import Any, Literal, NotRequired, TypedDict, Union, get_args, get_origin, get_type_hints

from pydantic import BaseModel

from skillup.history.comparison import CaseState
from skillup.reports.html.detail import OF_GRADE, OF_RECORD, OF_TURN
from skillup.schema.grade import Analysis, CheckResult, Decision, Grade, Stop, Summary
from skillup.schema.record import (
    Record,
    SimulatedEnd,
    ToolResult,
    TurnError,
    TurnRecord,
    TurnStatus,
    Usage,
    WorkspaceChanges,
)

Status = Literal["PASS", "FAIL", "ERROR", "SKIP", "NOT_RUN", "NOT_NEEDED", "RUNNING", "WAITING"]

TYPES = Path(__file__).parent / "viewer" / "dist" / "types.d.ts"
_SIMPLE: dict[Any, str] = {
    str: "string", bool: "boolean", int: "number", float: "number", Any: "unknown",
    type(None): "null",
}  # fmt: skip


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


_COPIED: dict[str, tuple[type[BaseModel], set[str]]] = {
    "CheckData": (CheckResult, set(CheckResult.model_fields) - {"spans", "children"}),
    "OfRecord": (Record, OF_RECORD),
    "OfTurn": (TurnRecord, OF_TURN),
    "TrialGrade": (Grade, OF_GRADE),
}


def typescript() -> str:
    """An interface for each of these, for what is copied, and for the models they name."""
    written: dict[str, str] = {}

    def name(kind: Any) -> str:
        origin, inside = get_origin(kind), get_args(kind)
        if origin is NotRequired:
            return name(inside[0])
        if origin is Literal:
            return " | ".join(f'"{one}"' for one in inside)
        if origin in (Union, types.UnionType):
            return " | ".join(name(one) for one in inside)
        if origin is list:
            return f"Array<{name(inside[0])}>"
        if origin is dict:
            return f"Record<string, {name(inside[1])}>"
        if kind in _SIMPLE:
            return _SIMPLE[kind]
        named: str = kind.__name__.removeprefix("Page")
        if named not in written:
            interface(named, kind)
        return named

    def interface(named: str, kind: Any, fields: Container[str] | None = None) -> None:
        written[named] = ""
        hints = get_type_hints(kind, include_extras=hasattr(kind, "__total__"))
        lines = [f"export interface {named} {{"]
        for field, hint in hints.items():
            if field not in (fields or getattr(kind, "model_fields", hints)):
                continue
            optional = "?" if get_origin(hint) is NotRequired else ""
            kind_of = name(Usage | None if field == "usage" else hint)
            lines.append(f"  {field}{optional}: {kind_of};")
        written[named] = "\n".join([*lines, "}"])

    interface("Index", PageIndex)
    for model in (SimulatedEnd, ToolResult, TurnError, WorkspaceChanges):
        name(model)
    for named, (kind, fields) in _COPIED.items():
        interface(named, kind, fields)
    head = "/* Made by `python -m skillup.reports.html.page_data`. */"
    return "\n\n".join([head, *(written[one] for one in sorted(written))]) + "\n"


if __name__ == "__main__":
    TYPES.write_text(typescript(), encoding="utf-8")
