"""Most things stand in a rollout twice: as an item that the model sees, and as an event for people.

Which of them comes first differs by kind and version, and older or cut files have only one.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import Any, Literal

from skillup.engines.transcript import as_dict, as_text

Side = Literal["item", "event"]

_MOST_IDS = 10_000


class Twins:
    """Knows of a thing told on one side whether the other side has told it already."""

    def __init__(self) -> None:
        # How many more items than events there were, by what they tell; pairs are taken out.
        self._messages: dict[str, int] = {}
        self._ids: dict[str, int] = {}

    def is_second_message(self, side: Side, role: str, text: str) -> bool:
        """The same words on the other side; breaks and spaces do not matter."""
        digest = blake2b("".join(text.split()).encode(errors="replace"), digest_size=16)
        return _is_second(self._messages, side, f"{role} {digest.hexdigest()}")

    def is_second_id(self, side: Side, what: str, call_id: str) -> bool:
        """The same call, or the same call's result."""
        while len(self._ids) > _MOST_IDS:
            del self._ids[next(iter(self._ids))]
        return _is_second(self._ids, side, f"{what} {call_id}")

    def begin_turn(self) -> None:
        """What was said earlier has no twin any more: the same words are said again."""
        self._messages.clear()


def words_of(content: Any) -> str:
    """What a message says in words; its twin may lack the pictures."""
    if not isinstance(content, list):
        return as_text(content)
    return "".join(as_text(as_dict(block).get("text")) for block in content)


def _is_second(balances: dict[str, int], side: Side, key: str) -> bool:
    step = 1 if side == "item" else -1
    before = balances.pop(key, 0)
    if before + step:
        balances[key] = before + step
    return before * step < 0
