"""Pairing wanted things with actual ones."""

from __future__ import annotations

from itertools import permutations

from hypothesis import given
from hypothesis import strategies as st

from skillup.checks.tools import unpaired

WANTED = st.lists(st.sets(st.integers(0, 3), max_size=4), max_size=4)
ACTUAL = st.lists(st.integers(0, 3), max_size=5)


def fits(wanted: set[int], actual: int) -> bool:
    return actual in wanted


def test_general_wish_gives_way_to_a_special_one() -> None:
    assert unpaired([{1, 2}, {1}], [1, 2], fits) == []


def test_one_thing_serves_one_wish_only() -> None:
    assert unpaired([{1}, {1}], [1, 2], fits) == [1]


@given(WANTED, ACTUAL)
def test_all_are_paired_exactly_if_some_order_pairs_them(
    wanted: list[set[int]], actual: list[int]
) -> None:
    possible = any(all(map(fits, wanted, chosen)) for chosen in permutations(actual, len(wanted)))

    assert (unpaired(wanted, actual, fits) == []) is possible
