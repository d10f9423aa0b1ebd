"""Classes of values: as dataclasses that are frozen, but for who sees to it."""

from __future__ import annotations

import copy
import pickle
from dataclasses import dataclass, field, replace

from skillup.frozen import frozen


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
