"""JSON Schemas (draft 2020-12) of the files people write and of those skillup writes."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel

DIALECT = "https://json-schema.org/draft/2020-12/schema"


def _models() -> dict[str, tuple[type[BaseModel], bool]]:
    from skillup.schema.case import Case
    from skillup.schema.judge_script import JudgeScript
    from skillup.schema.profile import Profile
    from skillup.schema.record import Record
    from skillup.schema.result import RunResult
    from skillup.schema.suite import Suite

    return {
        "case": (Case, True),
        "suite": (Suite, True),
        "profile": (Profile, True),
        "judge": (JudgeScript, True),
        "record": (Record, False),
        "result": (RunResult, False),
    }


def schema_names() -> list[str]:
    """What :func:`json_schema` knows."""
    return list(_models())


def json_schema(name: str) -> dict[str, Any]:
    """The schema of one kind of file; short spellings that people may write are in it."""
    model, written_by_people = _models()[name]
    made = model.model_json_schema(mode="validation" if written_by_people else "serialization")
    made.pop("title", None)
    return {"$schema": DIALECT, "title": f"skillup {name}", **made}
