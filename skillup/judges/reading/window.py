"""How much of a conversation a judge is shown, and the windows that relevance is judged in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from skillup.judges.reading.exchanges import Exchange


def last_turns(exchanges: Sequence[Exchange], size: int | None) -> list[Exchange]:
    """The exchanges of the last `size` turns; None: all of them. A follow-up is in its turn."""
    if size is None:
        return list(exchanges)
    turns = list(dict.fromkeys(exchange.turn for exchange in exchanges))
    kept = set(turns[-size:])
    return [exchange for exchange in exchanges if exchange.turn in kept]


@dataclass(frozen=True, slots=True)
class Window:
    """Neighbouring exchanges; the answers of those at its end are judged, the rest is context."""

    exchanges: tuple[Exchange, ...]
    judged: int
    """How many, counted from the end."""

    @property
    def label(self) -> str:
        """`turn 1`, `turns 1-3`: the turns that it spans, those put in beforehand left out."""
        turns = [exchange.turn for exchange in self.exchanges if exchange.turn > 0]
        return f"turn {turns[0]}" if turns[0] == turns[-1] else f"turns {turns[0]}-{turns[-1]}"


def windows_of(exchanges: Sequence[Exchange], size: int) -> list[Window]:
    """Every `size` neighbouring exchanges; a conversation that is no longer is one window.

    Each answer that was held is judged once: the first window judges all of its answers, every
    later one the answer that it adds. What lies before the first turn is context alone.
    """
    first = next((n for n, exchange in enumerate(exchanges) if exchange.step is not None), 0)
    ends = range(max(first + 1, min(size, len(exchanges))), len(exchanges) + 1)
    windows: list[Window] = []
    seen = first
    for end in ends:
        windows.append(Window(tuple(exchanges[max(0, end - size) : end]), end - seen))
        seen = end
    return windows
