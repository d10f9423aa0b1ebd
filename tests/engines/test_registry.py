"""Adapters by name."""

from __future__ import annotations

import pytest

from skillup.engines.base import SessionResumer
from skillup.engines.registry import ENGINES, get_engine
from skillup.errors import UsageError
from skillup.load.profiles import ADAPTERS


@pytest.mark.parametrize("name", sorted(ENGINES))
def test_every_adapter_is_there_and_can_resume(name: str) -> None:
    engine = get_engine(name)

    assert engine.name == name
    assert isinstance(engine, SessionResumer)
    assert engine.skill_directories()


def test_an_unknown_name_gets_the_nearest_one() -> None:
    with pytest.raises(UsageError) as raised:
        get_engine("claude-code")

    assert raised.value.hint == "did you mean `claude_code`?"


def test_a_name_that_is_near_nothing_gets_the_list() -> None:
    with pytest.raises(UsageError) as raised:
        get_engine("zzz")

    assert raised.value.hint is not None
    assert "codex" in raised.value.hint


def test_the_loader_knows_the_same_adapters() -> None:
    # It cannot import the registry, which is above it; a profile's `engine:` is checked there.
    assert set(ADAPTERS) == set(ENGINES)
