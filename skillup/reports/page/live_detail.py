"""A trial that has no record yet, for the page: what is known of it so far."""

from __future__ import annotations

from typing import Any

from pydantic import ValidationError

from skillup.reports.page.details import detail_of
from skillup.reports.page.images import Read
from skillup.reports.page.limits import Limits
from skillup.reports.page.raw_files import RawFiles
from skillup.reports.page.rows import Row
from skillup.schema.case import Case
from skillup.schema.checkpoint import Checkpoint


def waiting_detail(row: Row, n: int) -> dict[str, Any]:
    """Of a trial that was not begun, or was cut short: ``{n, job, case_id, waiting}``."""
    return {"n": n, "job": row["job"], "case_id": row["case_id"], "waiting": row["reason"]}


def live_detail(
    row: Row,
    n: int,
    checkpoint: Checkpoint | None,
    *,
    at: int | None,
    limits: Limits,
    raw: RawFiles,
    read: Read,
) -> dict[str, Any]:
    """Of a trial that is being held, in turn `at` (None: in none).

    The turns that its checkpoint has are there without checks, as they are judged at the end.
    `live` says what is being done, `under_way` has ``{turn_number, status, message, raw}`` of the
    turns that the checkpoint does not have.
    """
    job = row["job"]
    if checkpoint is None:
        known, case = 0, None
        detail = _empty(row, n)
    else:
        known = len(checkpoint.record.turns)
        case = _case(checkpoint)
        detail = detail_of(n, job, checkpoint.record, None, limits=limits, raw=raw, read=read)
    messages = [turn.content for turn in case.input.all_turns()] if case is not None else []
    under_way = [
        {
            "turn_number": number,
            "status": "running" if number == at else "completed",
            "message": messages[number - 1] if number <= len(messages) else None,
            "raw": raw.of_turn(job, number),
        }
        for number in range(known + 1, (at or 0) + 1)
    ]
    return {**detail, "live": row["reason"], "under_way": under_way}


def _case(checkpoint: Checkpoint) -> Case | None:
    """None if it is one of another version's."""
    try:
        return Case.model_validate(checkpoint.record.case)
    except ValidationError:
        return None


def _empty(row: Row, n: int) -> dict[str, Any]:
    """In the form of a trial, without anything that was said."""
    return {
        **{key: row[key] for key in ("job", "suite", "case_id", "title", "variant", "trial")},
        "n": n,
        "grade": None,
        "engine": {"profile": row["engine"]},
        "attempt": 1,
        "attempts": [],
        "session_id": None,
        "started_at": None,
        "system": None,
        "history": [],
        "turns": [],
        "conversation_checks": [],
        "variables": {},
        "notes": [],
        "skills": [],
        "error": None,
        "skipped": None,
        "simulated_end": None,
        "family": None,
        "raw": [],
    }
