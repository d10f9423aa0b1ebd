"""Comparing a list of wanted things with a list of actual ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

Wanted = TypeVar("Wanted")
Actual = TypeVar("Actual")


def first_unlike(
    wanted: Sequence[Wanted], actual: Sequence[Actual], fits: Callable[[Wanted, Actual], bool]
) -> int | None:
    """The first place where the lists differ; None if they have the same length and all fit."""
    for index, (one, other) in enumerate(zip(wanted, actual, strict=False)):
        if not fits(one, other):
            return index
    shorter, longer = sorted((len(wanted), len(actual)))
    return None if shorter == longer else shorter


def first_out_of_order(
    wanted: Sequence[Wanted], actual: Sequence[Actual], fits: Callable[[Wanted, Actual], bool]
) -> int | None:
    """The first wanted thing that does not come after those before it; others may be between.

    Taking the earliest fit each time is enough: a later one never leaves more to choose from.
    """
    rest = iter(actual)
    for index, one in enumerate(wanted):
        if not any(fits(one, other) for other in rest):
            return index
    return None


def unpaired(
    wanted: Sequence[Wanted], actual: Sequence[Actual], fits: Callable[[Wanted, Actual], bool]
) -> list[int]:
    """Indexes of wanted things left over when as many as possible have an actual one of their own.

    A maximum matching (augmenting paths): first come, first served would let a wanted thing that
    many fit take the only one that fits another.
    """
    fitting = [[i for i, other in enumerate(actual) if fits(one, other)] for one in wanted]
    taken_by: dict[int, int] = {}

    def place(index: int, tried: set[int]) -> bool:
        for candidate in fitting[index]:
            if candidate in tried:
                continue
            tried.add(candidate)
            if candidate not in taken_by or place(taken_by[candidate], tried):
                taken_by[candidate] = index
                return True
        return False

    return [index for index in range(len(wanted)) if not place(index, set())]
