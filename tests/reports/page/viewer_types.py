"""The form of the page's data for TypeScript.

``python -m tests.reports.page.viewer_types`` writes `viewer/dist/types.d.ts` anew; what a
conversation has beside what is copied of the record and the grade stands in `viewer/src/data.ts`.
"""

from __future__ import annotations

import types
from collections.abc import Container
from pathlib import Path
from typing import Any, Literal, NotRequired, Union, get_args, get_origin, get_type_hints

from pydantic import BaseModel

from skillup.reports.html import page_data
from skillup.reports.html.detail import OF_GRADE, OF_RECORD, OF_TURN
from skillup.reports.html.page_data import PageIndex
from skillup.schema.grade import CheckResult, Grade
from skillup.schema.record import (
    Record,
    SimulatedEnd,
    ToolResult,
    TurnError,
    TurnRecord,
    Usage,
    WorkspaceChanges,
)

TYPES = Path(page_data.__file__).parent / "viewer" / "dist" / "types.d.ts"
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
    head = "/* Made by `python -m tests.reports.page.viewer_types`. */"
    return "\n\n".join([head, *(written[one] for one in sorted(written))]) + "\n"


if __name__ == "__main__":
    TYPES.write_text(typescript(), encoding="utf-8")
