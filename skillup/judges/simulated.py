"""The simulated user's share in a trial, for its grade: what it took, and how it ended."""

from __future__ import annotations

from skillup.judges.usage import total_cost, total_usage
from skillup.schema.grade import Simulated
from skillup.schema.record import Record


def simulated(record: Record) -> Simulated | None:
    """None if nobody played the user."""
    turns = [turn for turn in record.turns if turn.source == "simulator"]
    end = record.simulated_end
    if not turns and end is None:
        return None
    # What is shared with a fork's parent is counted there.
    infos = [turn.simulator for turn in turns if turn.held_by is None]
    infos.append(end.info if end is not None else None)
    told = [info for info in infos if info is not None]
    return Simulated(
        messages=sum(turn.started_at is not None for turn in turns),
        stop=end.stop if end is not None else None,
        reason=end.reason if end is not None else "",
        models=list(dict.fromkeys(info.model for info in told if info.model is not None)),
        usage=total_usage(info.usage for info in told),
        cost_usd=total_cost(info.cost_usd for info in told),
    )


def given_up(record: Record) -> list[str]:
    """What a verdict's reason adds if the user did not come to a good end; checks decide."""
    end = record.simulated_end
    if end is None or end.stop == "completed":
        return []
    if end.stop == "limit":
        return ["the simulated user did not end the conversation: " + end.reason]
    return ["the simulated user gave up" + (f": {end.reason}" if end.reason else "")]
