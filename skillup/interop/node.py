"""A value of a source, where it stands, and the names that templates in it know.

Whoever reads a value through a node has used it; what nobody used is reported in the end.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from math import isfinite
from typing import Any

from skillup.errors import InvalidFilesError, Problem
from skillup.interop.report import Loc
from skillup.interop.source import Source
from skillup.interop.templating import Scope
from skillup.schema.templates import escape


def as_text(value: Any) -> str:
    """A scalar as it would be written; a list or mapping as JSON; nothing as an empty text."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return value
    if isinstance(value, dict | list):
        return json.dumps(value, ensure_ascii=False, indent=2, default=str)
    return str(value)


def tidy(number: float) -> float | int:
    """A whole number as such; one that was spelled unusually (``0042``) as it counts."""
    return int(number) if number == int(number) else number + 0


@dataclass(frozen=True, eq=False)
class Node:
    """One place in a source."""

    source: Source
    loc: Loc
    value: Any
    scope: Scope | None = None

    @classmethod
    def top(cls, source: Source, scope: Scope | None = None) -> Node:
        """The source's whole value."""
        return cls(source, (), source.data, scope)

    def with_scope(self, scope: Scope | None) -> Node:
        """The same place, its templates filled in from `scope`."""
        return Node(self.source, self.loc, self.value, scope)

    def get(self, *names: str) -> Node | None:
        """The value under the first of `names` that is there and not null."""
        if isinstance(self.value, dict):
            for name in names:
                if self.value.get(name) is not None:
                    return self._child(name)
                if name in self.value:
                    self.source.ledger.use((*self.loc, name))  # null: there is nothing to lose
        return None

    def items(self) -> Iterator[tuple[str, Node]]:
        """The entries of a mapping; none of anything else."""
        if isinstance(self.value, dict):
            for key in self.value:
                yield str(key), self._child(key)

    def elements(self) -> list[Node]:
        """The items of a list; a single value is a list of one."""
        if isinstance(self.value, list):
            if not self.value:
                self.use()
            return [self._child(index) for index in range(len(self.value))]
        return [self]

    def _child(self, part: Any) -> Node:
        return Node(self.source, (*self.loc, part), self.value[part], self.scope)

    def use(self) -> None:
        """Everything in it has come over."""
        self.source.ledger.use(self.loc)

    def raw(self) -> Any:
        """The value, templates filled in as far as they can be now; see :meth:`finish`."""
        self.use()
        return self.value if self.scope is None else self.scope.fill(self.value, self)

    def finish(self, text: str, *, live: bool = False) -> str:
        """A text made of raw values, for a place where names have no meaning.

        With `live`, for a message that is sent: ``<<name>>`` means something there.
        """
        if self.scope is None:
            return escape(text) if live else text
        return str(self.scope.finish(text, self, live=live))

    def take(self) -> Any:
        """The value, templates filled in, for a place where names have no meaning."""
        value = self.raw()
        return value if self.scope is None else self.scope.finish(value, self, live=False)

    def text(self) -> str:
        """The value as text, for such a place."""
        return as_text(self.take())

    def message(self) -> str:
        """The value as the text of a message that is sent."""
        return self.finish(as_text(self.raw()), live=True)

    def number(self) -> float | int | None:
        """The value as a number; None (and a note) if it is none."""
        value = self.take()
        if isinstance(value, str):
            try:
                value = float(value) if "." in value else int(value)
            except ValueError:
                value = None
        if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value):
            self.note("not a number", "left out")
            return None
        return tidy(value)

    def texts(self) -> list[str]:
        """The value as a list of texts."""
        value = self.take()
        return [as_text(item) for item in value] if isinstance(value, list) else [as_text(value)]

    def note(self, what: str, instead: str) -> None:
        """Report that this is lost, with everything in it."""
        self.use()
        self.lost(what, instead)

    def lost(self, what: str, instead: str) -> None:
        """Report that something of this is lost; the rest of it is accounted for elsewhere."""
        self.source.ledger.note(self.loc, what, instead, "lost")

    def changed(self, what: str, instead: str) -> None:
        """Report that this came over, but not quite as it was."""
        self.source.ledger.note(self.loc, what, instead, "changed")

    def problem(self, message: str, fix: str = "") -> Problem:
        """Something that makes the file impossible to convert."""
        return self.source.problem(self.loc, message, fix)

    def refuse(self, message: str, fix: str = "") -> InvalidFilesError:
        """The same, to be raised."""
        return InvalidFilesError([self.problem(message, fix)])
