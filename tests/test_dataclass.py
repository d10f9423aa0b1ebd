"""Classes of data: as dataclasses, but for who sees to it that values are not changed."""

from __future__ import annotations

import copy
import pickle
from dataclasses import field, replace
from typing import Any

import pytest

from skillup.dataclass import frozen, mutable


@frozen
class Endpoint:
    url: str
    key: str | None = field(default=None, repr=False)
    tried: list[str] = field(default_factory=list, compare=False)


@frozen
class Named(Endpoint):
    name: str = ""


def test_values_are_equal_hashed_and_shown_as_those_of_frozen_dataclasses() -> None:
    ours = Endpoint("u", "secret", ["a"])
    assert repr(ours) == "Endpoint(url='u', tried=['a'])"
    assert {ours} == {Endpoint("u", "secret")} != {replace(ours, url="v")}
    assert Named("u", name="n") == Named("u", name="n") != Named("u", name="m")
    assert Named("u") != Endpoint("u")
    assert ours == copy.copy(ours) == pickle.loads(pickle.dumps(ours))


@pytest.mark.parametrize("before", [0, 50])
def test_the_first_objects_and_later_ones_are_made_alike(before: int) -> None:
    @mutable
    class Counter:
        name: str
        found: list[int] = field(default_factory=list)
        own: int = field(init=False, default=3)

    make: Any = Counter
    for number in range(before):
        one = make("a")
        one.found.append(number)
        assert (one.name, one.found, one.own) == ("a", [number], 3)
        assert one == make(name="a", found=[number]) != make("a")
    wrong: list[Any] = [((), {}), ("abc", {}), ("a", {"name": "b"}), ("a", {"fond": 1})]
    for args, kwargs in wrong:
        with pytest.raises(TypeError, match="argument"):
            make(*args, **kwargs)
    with pytest.raises(TypeError, match="unhashable"):
        hash(make("a"))
