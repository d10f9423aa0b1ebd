"""What is wrong with the cases of a dataset: said once, and where it is to be mended.

What all items have is the case file's fault, and is told there; what only some of them have is told
of the first of these.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from skillup.errors import Problem
from skillup.load.dataset_items import QUERY
from skillup.load.yaml_reader import Document
from skillup.schema.templates import written_in

_LEADS = ("prompt", "turns", "conversation", "transcript")


@dataclass(slots=True)
class Findings:
    """The problems of a dataset's cases; both lists of an item are in the same order."""

    items: int
    _found: dict[tuple[str, ...], list[tuple[Problem, Problem]]] = field(default_factory=dict)

    def add(self, in_case_file: Sequence[Problem], in_item: Sequence[Problem]) -> None:
        """What one item has: as problems of the case file, and as problems of the item."""
        seen: set[tuple[str, ...]] = set()
        for told, own in zip(in_case_file, in_item, strict=False):
            key = (told.severity, told.field, told.message)
            if key not in seen:
                seen.add(key)
                self._found.setdefault(key, []).append((told, own))

    def told(self) -> Iterator[Problem]:
        """Each problem once, with how many items have it."""
        for places in self._found.values():
            told, own = places[0]
            if len(places) == self.items:
                yield told
            else:
                message = f"{own.message} (in {len(places)} of {self.items} items)"
                yield replace(own, message=message)


def message_never_said(template: Document) -> Problem | None:
    """A case file that leads the conversation itself, and has no place for the item's message."""
    given = template.data.get("input")
    if not isinstance(given, dict) or not any(name in given for name in _LEADS):
        return None
    if QUERY in written_in(json.dumps(given, default=str, ensure_ascii=False)):
        return None
    line, column = template.locate(("input",))
    return Problem(
        template.path, line, column, "input",
        f"the items' message is never said: nothing here is <<{QUERY}>>",
        f"write <<{QUERY}>> where the message belongs, or leave `input` without turns",
    )  # fmt: skip
