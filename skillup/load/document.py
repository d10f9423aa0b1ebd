"""One file's data, and where each value of it stands."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from skillup.load.yaml_builder import Places

_BREAK = re.compile(r"\r\n?|\n")


@dataclass(frozen=True, eq=False)
class Document:
    """One YAML file as data, whose top level is a mapping. Made by the YAML reader."""

    path: Path
    text: str
    data: dict[Any, Any]
    find_places: Callable[[str], Places]

    def as_written(self, loc: Sequence[str | int]) -> tuple[str | int, ...]:
        """Where in the file stands what the model has at `loc`: the same, but in branches."""
        return tuple(loc)

    def locate(self, loc: Sequence[str | int], *, key: bool = False) -> tuple[int, int]:
        """Line and column, from 1, of the value at `loc`; with `key`, of the key it stands under.

        Where nothing is at `loc`, the nearest value around it is meant. A value that was left
        empty stands where its key does, and an item of a list is its own key.
        """
        places = self._places
        value, found = places.data, (places.start, places.start)
        for part in loc:
            inside = places.of(value, part)
            if inside is None:
                break
            value, found = value[part], inside
        return self._line_and_column(found[0] if key else found[1])

    @cached_property
    def _places(self) -> Places:
        return self.find_places(self.text)

    @cached_property
    def _line_starts(self) -> list[int]:
        return [0, *(match.end() for match in _BREAK.finditer(self.text))]

    def _line_and_column(self, offset: int) -> tuple[int, int]:
        line = bisect_right(self._line_starts, offset)
        return line, offset - self._line_starts[line - 1] + 1
