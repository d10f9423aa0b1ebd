"""Engines made of descriptions: of those that skillup ships, and of profiles."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from skillup.engines.base import Engine
from skillup.engines.command.created import WritingDescribedEngine
from skillup.engines.command.engine import DescribedEngine
from skillup.load.yaml_reader import read_yaml
from skillup.schema.engine import AgentDescription

_SHIPPED = Path(__file__).with_name("agents")


@cache
def shipped(name: str) -> AgentDescription:
    """The description of an agent that skillup ships."""
    return AgentDescription.model_validate(read_yaml(_SHIPPED / f"{name}.yaml").data)


def shipped_engine(name: str) -> Engine:
    """The engine for an agent whose description skillup ships."""
    return make_engine(name, shipped(name))


def make_engine(name: str, about: AgentDescription) -> Engine:
    """An engine that can do what the description says: capabilities are asked with isinstance."""
    store = about.store
    if about.resume is None:
        return OneTurnEngine(DescribedEngine(name, about))
    if store is None or (store.new is None and store.sqlite is None):
        return DescribedEngine(name, about)
    return WritingDescribedEngine(name, about, store)


class OneTurnEngine:
    """A described agent that cannot resume a session."""

    def __init__(self, engine: DescribedEngine) -> None:
        self.name = engine.name
        self.start, self.check = engine.start, engine.check
        self.skill_directories, self.model_address = engine.skill_directories, engine.model_address
