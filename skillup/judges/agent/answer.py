"""The answer of an agent that judges: criteria under ids, and a verdict on each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import Field

from skillup.judges.models.question import AnswerForm, Reason, schema_of
from skillup.judges.voting import Vote
from skillup.schema.check_specs import Criterion


@dataclass(frozen=True, slots=True)
class AskedCriteria:
    """One criterion with the id by which the answer names it."""

    id: str
    criterion: Criterion


def numbered(criteria: Sequence[Criterion]) -> list[AskedCriteria]:
    """Criteria without an id, or with one that another has already, get ``criterion-N``."""
    asked: list[AskedCriteria] = []
    taken = {(criterion.id or "").casefold() for criterion in criteria}
    for number, criterion in enumerate(criteria, start=1):
        name = criterion.id
        if name is None or any(name.casefold() == other.id.casefold() for other in asked):
            name = f"criterion-{number}"
            while name in taken:
                name += "'"
        asked.append(AskedCriteria(name, criterion))
    return asked


class AgentVerdict(AnswerForm):
    """The verdict on one criterion."""

    id: str
    passed: bool = Field(alias="pass", strict=True)
    reason: Reason
    evidence: list[str] = Field(default_factory=list)


class AgentAnswer(AnswerForm):
    """One verdict for each criterion."""

    criteria: list[AgentVerdict]

    def vote_on(self, name: str) -> Vote:
        """What it says of the criterion with this id."""
        verdict = next(v for v in self.criteria if v.id.strip().casefold() == name.casefold())
        quotes = tuple(quote for quote in verdict.evidence if quote.strip())
        return Vote(float(verdict.passed), verdict.passed, verdict.reason.strip(), quotes)


def answer_schema(ids: Sequence[str]) -> dict[str, Any]:
    """The JSON Schema of an answer; every key is required, as strict modes of models want it."""
    schema = schema_of(AgentAnswer, ids)
    for bound in ("minItems", "maxItems"):
        del schema["properties"]["criteria"][bound]
    verdict = schema["$defs"]["AgentVerdict"]
    verdict["required"] = list(verdict["properties"])
    return schema
