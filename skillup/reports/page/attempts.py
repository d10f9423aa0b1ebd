"""Attempts at a trial that were not counted: how each ended, and what was said in it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pydantic import ValidationError

from skillup.reports.page.advice import error_data
from skillup.reports.page.raw_files import RawFiles, TurnLinks
from skillup.schema.record import Record

_MOST = 1000
"""More than that no trial takes: a larger number stands in a damaged record."""

Turns = Callable[[Record, TurnLinks], list[dict[str, Any]]]


def earlier_attempts(
    raw: RawFiles, job: str, attempt: int, turns_of: Turns
) -> list[dict[str, Any]]:
    """``{attempt, error, reason, turns, raw}`` of each attempt before `attempt`, the first first.

    `error` is of the whole of it, or of the turn that it ended in; without one, `reason` is what
    that turn says. An attempt whose record is damaged has its files alone.
    """
    return [_attempt(raw, job, number, turns_of) for number in range(1, min(attempt, _MOST))]


def _attempt(raw: RawFiles, job: str, number: int, turns_of: Turns) -> dict[str, Any]:
    links, streams = raw.of_attempt(job, number)
    told: dict[str, Any] = {"attempt": number, "error": None, "reason": "", "turns": []}
    try:
        record = Record.model_validate_json(raw.record_of_attempt(job, number))
    except (OSError, ValidationError):
        return {**told, "reason": "its record cannot be read", "raw": links}
    steps = [step for turn in record.turns for step in turn.executed()]
    error = record.error or next((step.error for step in steps if step.error), None)
    reason = next((turn.reason for turn in record.turns if turn.status == "failed"), "")
    told |= {"error": error_data(error), "reason": reason, "turns": turns_of(record, streams)}
    return {**told, "raw": links}
