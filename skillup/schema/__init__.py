"""The data that flows through skillup: frozen models, no I/O; and their JSON Schemas.

Models do without `from __future__ import annotations`: pydantic would compile each annotation anew.
"""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel

SCHEMAS = ("case", "suite", "profile", "judge", "record", "result")
"""The kinds of files that :func:`json_schema` knows; skillup writes the last two."""


def json_schema(name: str) -> dict[str, Any]:
    """The schema (draft 2020-12) of one kind of file, with the short spellings people may write."""
    from skillup.schema import case, grade, judge, profile, record, suite

    models: list[type[BaseModel]] = [case.Case, suite.Suite, profile.Profile, judge.JudgeScript]
    models += [record.Record, grade.RunResult]
    made = models[SCHEMAS.index(name)].model_json_schema(
        mode="serialization" if name in SCHEMAS[-2:] else "validation"
    )
    made["title"] = f"skillup {name}"
    dialect = "https://json-schema.org/draft/2020-12/schema"
    return {"$schema": dialect, "title": "", **made}
