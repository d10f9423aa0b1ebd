"""A turn of a conversation for the page: the message, the answer, and all that was done."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from skillup.reports.page.advice import error_data
from skillup.reports.page.captures_used import content_parts
from skillup.reports.page.items import items_of
from skillup.reports.page.limits import Limits, shortened
from skillup.reports.page.raw_files import Link
from skillup.schema.record import TurnRecord, WorkspaceChanges


def step_data(
    turn: TurnRecord,
    *,
    template: str | None,
    values: Mapping[str, str],
    limits: Limits,
    raw: list[Link],
    follow_up: int | None = None,
) -> dict[str, Any]:
    """What a turn and a follow-up (its place among the turn's, from 0) have in common.

    `template` and `values`: what the message was made of. Checks, captures and follow-ups are
    still empty.
    """
    content = shortened(turn.content, limits.text)
    return {
        "turn_number": turn.turn_number,
        "follow_up": follow_up,
        "status": turn.status,
        "reason": turn.reason,
        "source": turn.source,
        "content": content,
        "content_parts": content_parts(template, content, values),
        "response": shortened(turn.response, limits.text),
        "model": turn.model,
        "started_at": turn.started_at,
        "duration_ms": turn.duration_ms,
        "cost_usd": turn.cost_usd,
        "usage": turn.usage.model_dump() if turn.usage else None,
        "session_id": turn.session_id,
        "session_verified": turn.session_verified,
        "held_by": turn.held_by,
        "items": items_of(turn.transcript, limits),
        "captures": [],
        "changes": _changes(turn.changes, limits),
        "checks": [],
        "post_condition_passed": turn.post_condition_passed,
        "error": error_data(turn.error),
        "notes": list(turn.notes),
        "follow_ups": [],
        "raw": raw,
        "score": None,
        "asked_by": list(turn.asked_by),
        "simulator": turn.simulator.model_dump() if turn.simulator else None,
    }


def _changes(changes: WorkspaceChanges | None, limits: Limits) -> dict[str, Any] | None:
    if changes is None or not (changes.added or changes.modified or changes.deleted):
        return None
    return {
        "added": changes.added,
        "modified": changes.modified,
        "deleted": changes.deleted,
        "diff": shortened(changes.diff, limits.text),
    }
