"""Which turns of a session are a history that was put into it, and were never held."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from skillup.engines.claude_history import CLOSING, OPENING
from skillup.interop.session_turns import SessionTurn, SessionTurns
from skillup.schema.record import HistoryItem

_Said = tuple[str, str]
"""Who said it, and what."""


def seeded_turns(found: SessionTurns, history: Sequence[HistoryItem]) -> int | None:
    """How many of the session's turns, from its first on, are the cleaned `history`.

    Whatever user and assistant say is compared, calls of tools are not: each engine writes them in
    its own way. None if the session does not begin with the history.
    """
    wanted = _joined(
        (item.role, item.content) for item in history if item.role in ("user", "assistant")
    )
    if found.before:  # what an assistant said before any user is in no turn
        wanted = wanted[next((n for n, one in enumerate(wanted) if one[0] == "user"), 0) :]
    for count in range(len(found.turns) + 1):
        said = _joined(one for turn in found.turns[:count] for one in _said_in(turn))
        if said == wanted:
            return count
        if len(said) > len(wanted):
            return None
    return None


def _said_in(turn: SessionTurn) -> Iterable[_Said]:
    yield "user", turn.content
    for item in turn.items:
        if item.type == "message" and item.agent is None:
            yield "assistant", item.text or ""


def _joined(said: Iterable[_Said]) -> list[_Said]:
    """Each speaker's words in a row as one text; spaces and the fillers of an engine do not count.

    A user's message that was said again is there once, as in the turns of a session.
    """
    joined: list[_Said] = []
    for role, text in said:
        words = " ".join(text.split())
        if not words or words in (OPENING, CLOSING):
            continue
        if joined and joined[-1][0] == role:
            before = joined[-1][1]
            if not (role == "user" and before.endswith(words)):
                joined[-1] = (role, f"{before} {words}")
        else:
            joined.append((role, words))
    return joined
