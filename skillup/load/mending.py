"""A case that does not validate, mended so far that the rest of it can still be looked at.

All problems of a file are to be reported at once, also those that only a whole case shows. So what
is wrong is taken out, or replaced by something harmless where taking it out would move its
neighbours. The result is looked at, never run.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import ValidationError

from skillup.schema.case import Case

_ROUNDS = 3
_ANYTHING = "x"
_CHECK_LISTS = ("assertions", "success", "failure", "any_of", "all_of", "none_of")
_HARMLESS: Mapping[object, dict[str, str]] = {
    **{key: {"contains": _ANYTHING} for key in _CHECK_LISTS},
    "capture": {"variable": _ANYTHING, "pattern": f"({_ANYTHING})"},
}
"""What can stand for an item, by the key of its list."""
_MANY_TURNS = 1000
"""Of a branch whose turns are not known: no number that a check names is too high for it."""
_EXCLUDING = ("judge", "judges", "expected_output", "aggregation")


def mended(data: Mapping[Any, Any], error: ValidationError) -> tuple[Case, frozenset[str]] | None:
    """What can be looked at of a case that met `error`, and names that may have been defined there.

    These are all texts of what was taken out. None if nothing is left to look at.
    """
    mending = _Mending(copy.deepcopy(dict(data)))
    for _ in range(_ROUNDS):
        for details in error.errors(include_url=False, include_context=False):
            if not mending.mend(tuple(details["loc"])):
                return None
        try:
            return Case.model_validate(mending.data), frozenset(mending.removed)
        except ValidationError as again:
            error = again
    return None


class _Mending:
    def __init__(self, data: dict[Any, Any]) -> None:
        self.data = data
        self.removed: set[str] = set()

    def mend(self, loc: tuple[str | int, ...]) -> bool:
        """Mend the innermost thing around `loc` that can be; False if there is none."""
        if not loc:
            # They exclude each other, so all of them must go.
            return sum(self._remove(self.data, key) for key in _EXCLUDING) > 0
        places = list(self._places(loc))
        for index in reversed(range(len(places))):
            container, key = places[index]
            owner = places[index - 1][1] if index else None
            if isinstance(container, list):
                if owner in _HARMLESS:
                    if owner == "capture":
                        self.removed.update(_texts(container[key]))
                    container[key] = dict(_HARMLESS[owner])
                    return True
                if owner == "turns":
                    container[key] = self._turn(container[key])
                    return True
                if owner == "branches":
                    container[key] = self._branch(container[key], key)
                    return True
            elif index == 0 or (index == 1 and owner == "input"):
                return key not in ("input", "turns", "prompt", "conversation") and self._remove(
                    container, key
                )
            elif places[index - 2][1] == "branches":
                return self._in_branch(container, key, places[index - 1][1])
            elif places[index - 2][1] == "turns" and key not in ("content", "respond"):
                return self._remove(container, key)
        return False

    def _places(self, loc: tuple[str | int, ...]) -> Iterator[tuple[Any, Any]]:
        """Each container along `loc` with the key within it, as far as they were written."""
        value: Any = self.data
        for part in loc:
            if isinstance(value, dict):
                if part not in value:
                    continue
            elif not (isinstance(value, list) and isinstance(part, int) and part < len(value)):
                continue
            yield value, part
            value = value[part]

    def _turn(self, turn: Any) -> dict[Any, Any]:
        self.removed.update(_texts(turn))
        rest = dict(turn) if isinstance(turn, dict) else {}
        for key in ("respond", "slash_command"):
            rest.pop(key, None)
        return {**rest, "content": _ANYTHING}

    def _branch(self, branch: Any, number: int) -> dict[Any, Any]:
        rest = dict(branch) if isinstance(branch, dict) else {}
        for key in ("name", "turns"):
            if not rest.get(key):
                self._in_branch(rest, key, number)
        return rest

    def _in_branch(self, branch: dict[Any, Any], key: Any, number: int) -> bool:
        """The other branches stay what they are, and where they are."""
        if key == "turns":
            self.removed.update(_texts(branch.get(key)))
            branch[key] = [{"content": _ANYTHING}] * _MANY_TURNS
        elif key == "name":
            branch[key] = f"branch number {number}"
        else:
            return self._remove(branch, key)
        return True

    def _remove(self, container: dict[Any, Any], key: Any) -> bool:
        if key not in container:
            return False
        self.removed.update(_texts({key: container.pop(key)}))
        return True


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield str(key)
            yield from _texts(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _texts(inner)
    elif isinstance(value, str):
        yield value
