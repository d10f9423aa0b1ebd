"""The form of the page's data, as `docs/reports.md` has it, and the same for TypeScript.

``python -m skillup.reports.html.page_data`` writes `viewer/dist/types.d.ts` anew.
"""

from __future__ import annotations

import types
from pathlib import Path
from typing import Any, Literal, NotRequired, TypedDict, Union, get_args, get_origin, get_type_hints

from pydantic import BaseModel

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
Change = Literal["newly_failing", "newly_passing", "changed", "not_run", "only_a", "only_b", "same"]

TYPES = Path(__file__).parent / "viewer" / "dist" / "types.d.ts"
_LEFT_OUT = ("spans", "command", "retry_after_seconds")
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


class PageRunHead(TypedDict):
    run_id: str
    started_at: str
    finished: bool
    running: bool
    stopped: Stop | None
    path: str
    engines: list[PageEngine]
    suites: list[str]
    skillup_version: str | None


class RunMark(TypedDict):
    run_id: str
    started_at: str
    passed: int
    judged: int
    error: int
    score: float | None


class PageFailingSince(TypedDict):
    run_id: str
    started_at: str
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
    change: Change
    case_changed: bool
    sure: bool
    how_sure: str


class SideRun(TypedDict):
    run_id: str
    started_at: str
    path: str


class Sides(TypedDict):
    a: SideRun
    b: SideRun
    summary: list[str]
    rows: list[SideRow]
    notes: list[str]
    details_of_a: bool


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
    open: NotRequired[str]


class RunLine(TypedDict):
    id: str
    run_id: str | None
    status: str
    started_at: str | None
    suites: list[str]
    engines: list[str]
    counts: dict[str, int] | None
    done: int
    planned: int
    duration_ms: float | None
    cost_usd: float | None
    problem: str | None


class Link(TypedDict):
    name: str
    href: str


class TrialError(TurnError):
    advice: str


Evidence = TypedDict(
    "Evidence",
    {
        "turn": int,
        "follow_up": int | None,
        "in": Literal["response", "item", "changes"],
        "item": int | None,
        "part": Literal["text", "result", "arguments"] | None,
        "argument": str | None,
        "start": int,
        "end": int,
        "more": NotRequired[list["Evidence"]],
    },
)


class PageCheck(CheckResult):
    """A check's result, and where its evidence stands; without `spans`."""

    children: list[PageCheck]  # type: ignore[assignment]
    evidence: Evidence | None


class Item(TypedDict):
    """What an agent said or did: `text` of a message, the others of a call (`type`: ``tool``)."""

    type: Literal["message", "reasoning", "notice", "tool"]
    agent: NotRequired[str | None]
    text: NotRequired[str]
    id: NotRequired[str | None]
    name: NotRequired[str]
    kind: NotRequired[str]
    arguments: NotRequired[dict[str, Any]]
    result: NotRequired[ToolResult | None]
    duration_ms: NotRequired[float | None]


class ContentPart(TypedDict):
    text: str
    variable: str | None


class Where(TypedDict):
    start: int
    end: int
    follow_up: int | None


class CaptureData(TypedDict):
    variable: str
    value: str
    used_in: list[int]
    where: Where | None


class Picture(TypedDict):
    path: str
    size: int
    type: NotRequired[str]
    width: NotRequired[int]
    height: NotRequired[int]
    data: NotRequired[str | None]


class Changes(WorkspaceChanges):
    images: list[Picture]


class PageTurn(TypedDict):
    """A turn or a follow-up (`follow_up`: its place)."""

    follow_up: int | None
    content: str
    content_parts: list[ContentPart]
    response: str
    items: list[Item]
    captures: list[CaptureData]
    changes: Changes | None
    checks: list[PageCheck]
    error: TrialError | None
    follow_ups: list[PageTurn]
    raw: list[Link]
    score: float | None
    passed_on: NotRequired[str | None]
    label: NotRequired[str]
    passed: NotRequired[bool]


class PageHistoryMessage(TypedDict):
    role: str
    content: str
    items: list[Item]


class TrialGrade(TypedDict):
    pass


class PageAttempt(TypedDict):
    attempt: int
    error: TrialError | None
    reason: str
    turns: list[PageTurn]


class FamilyTrial(TypedDict):
    job: str
    n: int
    case_id: str
    trial: int
    status: Status
    forks_at: int
    parent_n: int | None


class Family(TypedDict):
    of: str
    tree: list[FamilyTrial]


class Trial(TypedDict):
    """A conversation; of one that has not begun, or cannot be shown, only why."""

    n: int
    job: str
    grade: TrialGrade | None
    title: str | None
    attempts: list[PageAttempt]
    system: str | None
    history: list[PageHistoryMessage]
    turns: list[PageTurn]
    conversation_checks: list[PageCheck]
    error: TrialError | None
    simulated_end: SimulatedEnd | None
    family: Family | None
    raw: list[Link]
    live: NotRequired[str]
    waiting: NotRequired[str]
    problem: NotRequired[str]


_COPIED: dict[Any, tuple[type[BaseModel], set[str]]] = {
    PageTurn: (TurnRecord, OF_TURN),
    Trial: (Record, OF_RECORD),
    TrialGrade: (Grade, OF_GRADE),
}


def typescript() -> str:
    """An interface for each of these, and for the models they name."""
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
        if kind not in _SIMPLE:
            interface(kind)
        return _SIMPLE.get(kind) or kind.__name__.removeprefix("Page")

    def interface(kind: Any) -> None:
        named = kind.__name__.removeprefix("Page")
        if named in written:
            return
        written[named] = ""
        hints = get_type_hints(kind, include_extras=not issubclass(kind, BaseModel))
        if kind in _COPIED:
            model, names = _COPIED[kind]
            hints |= {n: hint for n, hint in get_type_hints(model).items() if n in names}
        lines = [f"export interface {named} {{"]
        for field, hint in hints.items():
            if field in _LEFT_OUT or field.startswith("model_"):
                continue
            optional = "?" if get_origin(hint) is NotRequired else ""
            kind_of = name(Usage | None if field == "usage" else hint)
            lines.append(f"  {field}{optional}: {kind_of};")
        written[named] = "\n".join([*lines, "}"])

    for kind in (PageIndex, RunLine, Trial):
        interface(kind)
    head = "/* Made by `python -m skillup.reports.html.page_data`. */"
    return "\n\n".join([head, *(written[one] for one in sorted(written))]) + "\n"


if __name__ == "__main__":
    TYPES.write_text(typescript(), encoding="utf-8")
