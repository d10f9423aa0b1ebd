"""The data that flows through skillup: frozen models, no I/O; and their JSON Schemas.

Models do without `from __future__ import annotations`: pydantic would compile each annotation anew.
"""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel

_READ = ("case", "suite", "profile", "judge")
SCHEMAS = (*_READ, "record", "result", "comparison", "history")
"""What :func:`json_schema` knows: files that people write, and what skillup writes and prints."""


def json_schema(name: str) -> dict[str, Any]:
    """The schema (draft 2020-12) of one kind of file, with the short spellings people may write."""
    from skillup.schema import case, grade, judge, past_runs, profile, record, suite

    models: list[type[BaseModel]] = [case.Case, suite.Suite, profile.Profile, judge.JudgeScript]
    models += [record.Record, grade.RunResult]
    models += [past_runs.ComparisonData, past_runs.HistoryData]
    made = models[SCHEMAS.index(name)].model_json_schema(
        mode="validation" if name in _READ else "serialization"
    )
    made["title"] = f"skillup {name}"
    dialect = "https://json-schema.org/draft/2020-12/schema"
    return {"$schema": dialect, "title": "", **made}
