"""The form of the page's data, for TypeScript and for the tests.

``python -m tests.reports.page.viewer_types`` writes `viewer/dist/types.d.ts` anew; what a
conversation has beside what is copied of the record and the grade stands in `viewer/src/data.ts`.
"""

from __future__ import annotations

import types
from collections.abc import Container
from pathlib import Path
from typing import Any, Literal, NotRequired, Union, get_args, get_origin, get_type_hints

from pydantic import BaseModel, ConfigDict, TypeAdapter
from typing_extensions import TypedDict

from skillup.history.comparison import CaseState
from skillup.reports.html import detail
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

TYPES = Path(detail.__file__).parent / "viewer" / "dist" / "types.d.ts"


def form(name: str, *more: Any, **fields: Any) -> Any:
    """A form with these fields, after those of `more`."""
    every = [part for one in more for part in get_type_hints(one, include_extras=True).items()]
    made = TypedDict(name, {**dict(every), **fields})  # type: ignore[misc]
    setattr(made, "__pydantic_config__", ConfigDict(extra="forbid"))  # noqa: B010 - mypy's
    return made


def many(kind: Any) -> Any:
    return types.GenericAlias(list, (kind,))


Status = Literal["PASS", "FAIL", "ERROR", "SKIP", "NOT_RUN", "NOT_NEEDED", "RUNNING", "WAITING"]
Number = float | None
Text = str | None
RowTurn = form("RowTurn", status=TurnStatus, ok=bool | None, unjudged=NotRequired[bool])
RowSimulator = form(
    "RowSimulator", messages=int, cost_usd=Number, tokens=int | None, models=list[str]
)
OfRun = form("OfRun", run_id=str, started_at=str)
OfCase = form("OfCase", suite=str, case_id=str, engine=str, variant=str)
Row = form(
    "Row", OfCase, n=int, job=str, title=Text, tags=list[str], trial=int, status=Status,
    reason=str, turns=many(RowTurn), flaky=bool, score=Number, end=bool | None,
    duration_ms=Number, cost_usd=Number, tokens=int | None, error_kind=Text, branch_of=Text,
    simulator=RowSimulator | None,
)  # fmt: skip
Engine = form("Engine", profile=str, adapter=Text, model=Text, version=Text)
RunHead = form(
    "RunHead", OfRun, finished=bool, running=bool, stopped=Stop | None, path=str,
    engines=many(Engine), suites=list[str], skills=list[str], skillup_version=Text,
)  # fmt: skip
RunMark = form("RunMark", OfRun, passed=int, judged=int, error=int, score=Number)
FailingSince = form("FailingSince", OfRun, runs=int)
CaseHistory = form("CaseHistory", OfCase, marks=many(RunMark), failing_since=FailingSince | None)
Decided = form("Decided", OfCase, decision=Decision)
Side = form("Side", status=Status, score=Number, passed=int, judged=int, reason=str, n=int | None)
SideRow = form(
    "SideRow", OfCase, a=Side | None, b=Side | None, change=CaseState, case_changed=bool,
    how_sure=str,
)  # fmt: skip
SideRun = form("SideRun", OfRun, path=str)
Sides = form(
    "Sides", a=SideRun, b=SideRun, reference=str, changed=list[str], summary=list[str],
    rows=many(SideRow),
)  # fmt: skip
Index = form(
    "Index", schema=str, mode=Literal["report", "view"], run=RunHead, summary=Summary,
    analysis=Analysis | None, deciding=list[str], decided=many(Decided), rows=many(Row),
    not_run=list[str], not_needed=list[str], warnings=list[str],
    history=many(CaseHistory) | None, sides=Sides | None, compared=list[str],
    open=NotRequired[str],
)  # fmt: skip
"""A run: all but its conversations. `open`: of `skillup view`, the run to show first."""


def check_index(data: Any) -> None:
    """Raises ValidationError where the page's data is not of its form."""
    TypeAdapter(Index).validate_python(data)


_SIMPLE: dict[Any, str] = {
    str: "string", bool: "boolean", int: "number", float: "number", Any: "unknown",
    type(None): "null",
}  # fmt: skip
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
        named: str = kind.__name__
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

    interface("Index", Index)
    for model in (SimulatedEnd, ToolResult, TurnError, WorkspaceChanges):
        name(model)
    for named, (kind, fields) in _COPIED.items():
        interface(named, kind, fields)
    head = "/* Made by `python -m tests.reports.page.viewer_types`. */"
    return "\n\n".join([head, *(written[one] for one in sorted(written))]) + "\n"


if __name__ == "__main__":
    TYPES.write_text(typescript(), encoding="utf-8")
