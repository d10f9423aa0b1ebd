"""The criteria as they are asked: each with an id, and the schema of an answer to all of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from skillup.schema.check_specs import Criterion


@dataclass(frozen=True, slots=True)
class Asked:
    """One criterion with the id by which the answer names it."""

    id: str
    criterion: Criterion


def numbered(criteria: Sequence[Criterion]) -> list[Asked]:
    """Criteria without an id, or with one that another has already, get ``criterion-N``."""
    asked: list[Asked] = []
    taken = {criterion.id for criterion in criteria}
    for number, criterion in enumerate(criteria, start=1):
        name = criterion.id
        if name is None or any(name == other.id for other in asked):
            name = f"criterion-{number}"
            while name in taken:
                name += "'"
        asked.append(Asked(name, criterion))
    return asked


def answer_schema(asked: Sequence[Asked]) -> dict[str, Any]:
    """The JSON Schema of an answer; every key is required, as strict modes of models want it."""
    verdict = {
        "type": "object",
        "properties": {
            "id": {"type": "string", "enum": [item.id for item in asked]},
            "pass": {"type": "boolean"},
            "reason": {"type": "string"},
            "evidence": {"type": "array", "items": {"type": "string"}},
        },
        "required": ["id", "pass", "reason", "evidence"],
        "additionalProperties": False,
    }
    return {
        "type": "object",
        "properties": {"criteria": {"type": "array", "items": verdict}},
        "required": ["criteria"],
        "additionalProperties": False,
    }
