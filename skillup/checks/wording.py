"""A check and what it found, as one phrase that says nothing twice."""

from __future__ import annotations

from itertools import takewhile

_OF_NO_ACCOUNT = (
    "a all and answer any are contain contains does found in is it match matches no none not of "
    "text the there was were ~"
)
_EMPTY = frozenset(_OF_NO_ACCOUNT.split())
"""Words that tell what came of a check, and not what it is about."""
_MARKS = "\"'“”‘’`,;:.()"


def in_words(name: str, found: str) -> str:
    """``contains "yes": not found``, where `found` is ``not found: "yes"``; by its first line.

    Where `found` is a sentence about all that `name` is about, it stands alone: of
    ``file_contains a.md ~ /x/`` that is ``/x/ is not in a.md``.
    """
    first = next(iter(found.strip().splitlines()), "")
    if not first:
        return name
    kind, _, wanted = name.partition(" ")
    about = _about(wanted) or _about(kind)
    if not about or _about(first) != about:
        return f"{name}: {first}"
    came_of_it = " ".join(takewhile(lambda word: not _about(word), first.split()))
    return f"{name}: {came_of_it.rstrip(':').removesuffix(' of')}" if came_of_it else first


def beside_found(found: str) -> str:
    """`found` for where the word stands before it already: ``"yes"``, of ``found "yes"``."""
    return found.removeprefix("found ")


def _about(text: str) -> set[str]:
    # Within quotation marks the same words are what it is about.
    parts = (part.strip("(),:;") for part in text.split())
    return {word for part in parts if part not in _EMPTY and (word := part.strip(_MARKS))}
