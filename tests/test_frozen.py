"""Classes of data: as dataclasses, but for who sees to it that values are not changed."""

from __future__ import annotations

import copy
import pickle
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from skillup.frozen import frozen, mutable


@frozen
class Endpoint:
    url: str
    key: str | None = field(default=None, repr=False)
    tried: list[str] = field(default_factory=list, compare=False)


@frozen
class Named(Endpoint):
    name: str = ""


@dataclass(frozen=True)
class Standard:
    url: str
    key: str | None = field(default=None, repr=False)
    tried: list[str] = field(default_factory=list, compare=False)


def test_values_are_equal_hashed_and_shown_as_those_of_frozen_dataclasses() -> None:
    ours, standard = Endpoint("u", "secret", ["a"]), Standard("u", "secret", ["a"])
    assert repr(ours) == repr(standard).replace("Standard", "Endpoint")
    assert "secret" not in repr(ours)
    assert ours == Endpoint("u", "secret")
    assert hash(ours) == hash(Endpoint("u", "secret"))
    assert ours != replace(ours, url="v")
    assert Named("u", name="n") == Named("u", name="n") != Named("u", name="m")
    assert Named("u") != Endpoint("u")
    assert ours == copy.copy(ours) == pickle.loads(pickle.dumps(ours))


WRONG: list[tuple[Any, Any]] = [
    ((), {}),
    (("a", 1, [], 3), {}),
    (("a",), {"name": "b"}),
    (("a",), {"sen": 1}),
    (("a",), {"own": 1}),
]


@pytest.mark.parametrize("before", [0, 50])
def test_the_first_objects_and_later_ones_are_made_alike(before: int) -> None:
    @mutable
    class Counter:
        name: str
        seen: int = 0
        found: list[int] = field(default_factory=list)
        own: int = field(init=False, default=3)

    def make(*args: Any, **kwargs: Any) -> Counter:
        return Counter(*args, **kwargs)

    for number in range(before):
        one = make("a", seen=number)
        one.found.append(number)
        assert (one.name, one.seen, one.found, one.own) == ("a", number, [number], 3)
        assert one == make("a", number, [number]) != make("a")
    for args, kwargs in WRONG:
        with pytest.raises(TypeError, match="__init__"):
            make(*args, **kwargs)
    assert (make("a", found=[1]).found, make(name="a").found) == ([1], [])
    with pytest.raises(TypeError, match="unhashable"):
        hash(make("a"))
