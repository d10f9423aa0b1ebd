"""What shared turns took, noted in the journal: they count even if no trial with them ever ends."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pydantic import ValidationError

from skillup.executors.stopping import Stopping
from skillup.schema.record import TurnRecord
from skillup.store import RunDirectory

_EVENT = "turns_shared"
_KEPT = {"turn_number", "status", "session_id", "started_at", "usage", "cost_usd", "simulator"}


def shared_costs(
    profile: str, jobs: Iterable[str], turns: Sequence[TurnRecord]
) -> dict[str, Any] | None:
    """What `turns` took, which were held for `jobs` on the engine of `profile`, as JSON-like data.

    What judges took for their gates counts with the record that has it. None: nothing was held.
    """
    # A turn is known again, in a record, by its session.
    told = [_told(turn) for turn in turns if turn.session_id is not None]
    return {"jobs": list(jobs), "profile": profile, "turns": told} if told else None


def note_shared(directory: RunDirectory, stopping: Stopping, costs: Mapping[str, Any]) -> None:
    """It counts now. Raises KeyError or ValueError if :func:`shared_costs` did not make it."""
    turns = [_turn(turn) for turn in costs["turns"]]
    directory.journal(
        _EVENT, durable=True, jobs=costs["jobs"], profile=costs["profile"], turns=costs["turns"]
    )
    stopping.count_shared(costs["profile"], turns)


def count_noted(events: Iterable[Mapping[str, Any]], stopping: Stopping) -> None:
    """What earlier starts of the run have noted counts; what a record has too, counts once."""
    for event in events:
        if event.get("event") != _EVENT:
            continue
        try:
            turns = [_turn(turn) for turn in event["turns"]]
        except (KeyError, TypeError, ValidationError):
            continue
        stopping.count_shared(str(event.get("profile")), turns)


def _told(turn: TurnRecord) -> dict[str, Any]:
    told = turn.model_dump(mode="json", include=_KEPT)
    return told | {"follow_ups": [_told(one) for one in turn.follow_ups]}


def _turn(told: Mapping[str, Any]) -> TurnRecord:
    """What was said is in the records."""
    follow_ups = [_turn(one) for one in told["follow_ups"]]
    return TurnRecord.model_validate({**told, "content": "", "follow_ups": follow_ups})
