"""Putting the past into the agent's session, so that its first live turn goes on from there."""

from __future__ import annotations

from collections.abc import Sequence

from skillup.engines.base import Engine, HistorySeeder, Placed, SessionResumer, TrialContext
from skillup.schema import templates
from skillup.schema.conversation import Turn
from skillup.schema.record import HistoryItem, TurnError


async def place_history(
    engine: Engine, items: Sequence[HistoryItem], context: TrialContext
) -> Placed:
    """A session of this trial's that holds `items`; the error says why there is none."""
    if not isinstance(engine, HistorySeeder) or not isinstance(engine, SessionResumer):
        what = f"{engine.name} cannot be given a history; use another engine with --engine"
        return Placed(None, error=TurnError(kind="unsupported", message=what))
    problem = engine.seeding_problem(context.version)
    if problem is not None:
        return Placed(None, error=TurnError(kind="unsupported", message=problem))
    return await engine.seed(items, context)


def unanswered_problem(turns: Sequence[Turn], unanswered: Sequence[str]) -> TurnError | None:
    """Why the past's unanswered messages have no place in the conversation; None: they have."""
    if not unanswered or not turns or turns[0].respond is None:
        return None
    what = "the history ends with a message of the user's, and the simulated user writes the next"
    what += ": leave the last one out, or give turn 1 a `content`"
    return TurnError(kind="unsupported", message=what)


def with_unanswered(turns: Sequence[Turn], unanswered: Sequence[str]) -> list[Turn]:
    """`turns`, the first with the past's unanswered messages before its own.

    They are what the dataset says, not templates. A conversation that a simulated user leads has no
    turns yet: there they are the first.
    """
    past = "\n\n".join(map(templates.escape, unanswered))
    if not past:
        return list(turns)
    if not turns:
        return [Turn(content=past)]
    if turns[0].content is None:
        return list(turns)
    update = {"content": f"{past}\n\n{as_template(turns[0])}", "literal": False}
    return [turns[0].model_copy(update=update), *turns[1:]]


def as_template(turn: Turn) -> str:
    """The turn's message, as a template even where it is none."""
    content = turn.content or ""
    return templates.escape(content) if turn.literal else content
