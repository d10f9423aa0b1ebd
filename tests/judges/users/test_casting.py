"""Which model plays the user, and what is known to be wrong before it is asked."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import anyio
import pytest

from skillup.judges.models.client import ModelOptions, Models
from skillup.schema.case import Case
from skillup.schema.profile import Profile
from skillup.schema.record import TurnError
from skillup.schema.suite import UserSimulator, playing_model
from skillup.simulator import SimulatorFactory


def make_case(**given: Any) -> Case:
    part = {"max_turns": 3, "persona": {"objective": "renew the card"}}
    return Case.model_validate({"id": "a", "input": {"conversation": part}, **given})


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ({"model": "anthropic:m"}, "anthropic:m"),
        ({"model": "m", "provider": "simulation", "protocol": "openai"}, "openai:m"),
        ({"model": "m", "provider": "anthropic"}, "anthropic:m"),
        ({"model": "anthropic/m"}, "anthropic:m"),
        ({"model": "dashscope/m", "protocol": "openai"}, "openai:dashscope/m"),
    ],
)
def test_a_model_is_named_as_judges_are_or_as_skill_up_does(
    given: dict[str, str], name: str
) -> None:
    model = playing_model(UserSimulator.model_validate(given), make_case())
    assert model is not None
    assert model.model == name


def test_the_judges_model_plays_with_the_users_own_patience_and_is_asked_once() -> None:
    case = make_case(judge_model={"model": "openai:j", "repeat": 3, "timeout_seconds": 9})
    model = playing_model(UserSimulator(timeout_seconds=5), case)
    assert model is not None
    assert (model.model, model.repeat, model.timeout_seconds) == ("openai:j", 1, 5)


def casting(environment: Mapping[str, str], profiles: Mapping[str, Profile]) -> SimulatorFactory:
    models = Models(ModelOptions(environment, lambda text: text))
    return SimulatorFactory(
        models.seen_from, models.problem, lambda name, _: profiles[name], environment
    )


def problem(given: UserSimulator | None, **environment: str) -> TurnError | None:
    profiles = {
        "scripted": Profile(name="scripted", engine="scripted"),
        "gone": Profile(name="gone", engine="claude_code", command=["/nowhere/claude"]),
    }
    found = casting(environment, profiles)
    return anyio.run(found.problem, make_case(), given, Path("/nowhere"))


@pytest.mark.parametrize(
    ("given", "what"),
    [
        (None, "nobody plays it"),
        (UserSimulator(model="anthropic:m"), "ANTHROPIC_API_KEY"),
        (UserSimulator(model="m"), "names no model"),
        (UserSimulator(engine="scripted"), "user_simulator.scripted"),
        (UserSimulator(engine="gone"), "no program"),
    ],
)
def test_what_is_missing_is_known_before_the_first_turn(
    given: UserSimulator | None, what: str
) -> None:
    found = problem(given)
    assert found is not None
    assert found.kind == "judge"
    assert what in found.message
