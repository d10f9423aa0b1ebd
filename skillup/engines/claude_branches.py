"""Which lines of a Claude Code session file are the conversation as it stands.

The lines are a tree: each names its parent. When the user goes back, the new message becomes
another child of an earlier line, and the old branch stays in the file. The conversation is the way
from the last message up to the root. Two things stand beside that way and belong to it: a message's
blocks and tool results, when several tools are called at once, and lines that are no messages.
"""

from __future__ import annotations

from array import array
from typing import Any

from skillup.engines.transcript import as_dict, as_list

_NOT_IN_TREE = -1
_ROOT = 0
_BESIDE, _PROMPT, _ANSWER = range(3)


class Branches:
    """Give it every row in order, then :meth:`settle`; till then it keeps 200 bytes of each."""

    def __init__(self) -> None:
        self._places: dict[str, int] = {}
        self._messages: dict[str, int] = {}
        # By line number, from 1.
        self._parents = array("q", [_NOT_IN_TREE])
        self._kinds = bytearray([_BESIDE])
        self._message_of = array("q", [0])
        self._previous = _ROOT
        self._linked = False
        self._kept = bytearray()

    def take(self, number: int, row: Any) -> None:
        """A line, by its number; anything but an object is in no tree."""
        while len(self._parents) < number:
            self._append(_NOT_IN_TREE, _BESIDE, None)
        row = as_dict(row)
        uuid = row.get("uuid")
        in_tree = isinstance(uuid, str) and not row.get("isSidechain") and not row.get("agentId")
        kind = _kind_of(row) if in_tree else _BESIDE
        message_id = as_dict(row.get("message")).get("id") if kind == _ANSWER else None
        self._append(self._parent_of(row) if in_tree else _NOT_IN_TREE, kind, message_id)
        if in_tree:
            self._previous = number
            self._places[str(uuid)] = number

    def _append(self, parent: int, kind: int, message_id: Any) -> None:
        self._parents.append(parent)
        self._kinds.append(kind)
        known = self._messages
        place = known.setdefault(message_id, len(known) + 1) if isinstance(message_id, str) else 0
        self._message_of.append(place)

    def settle(self) -> None:
        """All lines have been given."""
        count = len(self._parents)
        self._places.clear()
        self._kept = bytearray(count)
        leaf = next((n for n in range(count - 1, 0, -1) if self._kinds[n] != _BESIDE), 0)
        # Without a single link the lines tell no branches.
        if not self._linked or leaf == 0:
            self._kept = bytearray(b"\1" * count)
            return
        answers = set()
        place = leaf
        while place > _ROOT:
            self._kept[place] = 1
            answers.add(self._message_of[place])
            place = self._parents[place]
        answers.discard(0)
        self._kept[_ROOT] = 1
        for number in range(1, count):
            parent = self._parents[number]
            beside = self._kinds[number] == _BESIDE or self._message_of[number] in answers
            if parent == _NOT_IN_TREE or (beside and self._kept[parent]):
                self._kept[number] = 1

    def is_left(self, line: int) -> bool:
        """Whether a line is on a branch that the user went back from; only after `settle`."""
        return line < len(self._kept) and not self._kept[line]

    def _parent_of(self, row: dict[str, Any]) -> int:
        """A line that names no parent, or one that is not there, follows the line before it."""
        if "parentUuid" not in row:
            return self._previous
        parent = row["parentUuid"]
        compacted = row.get("subtype") == "compact_boundary" or row.get("isCompactSummary")
        if parent is None:
            parent = row.get("logicalParentUuid")
            if parent is None and not compacted:
                return _ROOT
        place = self._places.get(parent) if isinstance(parent, str) else None
        self._linked = self._linked or place is not None
        return self._previous if place is None else place


def _kind_of(row: dict[str, Any]) -> int:
    if row.get("type") == "assistant":
        return _ANSWER
    if row.get("type") != "user":
        return _BESIDE
    blocks = map(as_dict, as_list(as_dict(row.get("message")).get("content")))
    return _BESIDE if any(block.get("type") == "tool_result" for block in blocks) else _PROMPT
