"""The judge's answer: one JSON object of a fixed form, taken strictly or not at all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from skillup.judges.agents.criteria import Asked
from skillup.judges.strict_json import DoubtfulJsonError, only_object

_KEYS = {"id", "pass", "reason", "evidence"}


class MalformedAnswerError(Exception):
    """The answer has not the form that was asked for; the message says what is wrong."""


@dataclass(frozen=True, slots=True)
class CriterionVerdict:
    """What the judge said of one criterion."""

    passed: bool
    reason: str
    evidence: tuple[str, ...] = ()


def read_answer(text: str, asked: Sequence[Asked]) -> dict[str, CriterionVerdict]:
    """The verdicts by criterion id, from a message that is one JSON object, or ends with a block.

    Raises MalformedAnswerError unless it speaks of every criterion, each once, in the right form.
    """
    try:
        told = only_object(text)
    except DoubtfulJsonError as doubt:
        raise MalformedAnswerError(str(doubt)) from None
    given = told.get("criteria")
    if not isinstance(given, list):
        raise MalformedAnswerError("the answer has no list `criteria`")
    verdicts: dict[str, CriterionVerdict] = {}
    known = [item.id for item in asked]
    for part in given:
        name, verdict = _verdict(part)
        if name not in known:
            raise MalformedAnswerError(f"the answer speaks of {name!r}, which was not asked")
        if name in verdicts:
            raise MalformedAnswerError(f"the answer speaks of {name!r} twice")
        verdicts[name] = verdict
    missing = [name for name in known if name not in verdicts]
    if missing:
        raise MalformedAnswerError(f"the answer says nothing of {', '.join(missing)}")
    return verdicts


def _verdict(part: Any) -> tuple[str, CriterionVerdict]:
    if not isinstance(part, dict) or not isinstance(part.get("id"), str):
        raise MalformedAnswerError("an element of `criteria` has no `id`")
    name = part["id"]
    strange = [key for key in part if key not in _KEYS]
    if strange:
        raise MalformedAnswerError(f"{name!r} has the unknown key {strange[0]!r}")
    passed, reason, evidence = part.get("pass"), part.get("reason"), part.get("evidence", [])
    if not isinstance(passed, bool):
        raise MalformedAnswerError(f"`pass` of {name!r} is neither true nor false")
    if not isinstance(reason, str) or not reason.strip():
        raise MalformedAnswerError(f"{name!r} has no `reason`")
    if not isinstance(evidence, list) or not all(isinstance(quote, str) for quote in evidence):
        raise MalformedAnswerError(f"`evidence` of {name!r} is no list of texts")
    return name, CriterionVerdict(passed, reason.strip(), tuple(q for q in evidence if q.strip()))
