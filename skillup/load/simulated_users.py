"""What can be wrong with a simulated user: nobody to play it, no limit, names without a value."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from skillup.schema.case import Case
from skillup.schema.conversation import Chatter
from skillup.schema.simulation import needs_simulator, playing_model
from skillup.schema.suite import Suite

Loc = tuple[str | int, ...]


def nobody_plays(case: Case, suite: Suite) -> Iterator[tuple[Loc, str, str]]:
    """Where a user is needed that nobody plays: the place, what is wrong, what to do."""
    given = suite.user_simulator
    if not needs_simulator(case) or (given is not None and given.engine is not None):
        return
    if playing_model(given, case) is None:
        yield (
            _needed_at(case),
            "nobody plays the simulated user",
            ("set `user_simulator.model` (or `engine`) in eval.yaml; without it a run is an error"),
        )


def without_limit(case: Case) -> Iterator[tuple[Loc, str, str]]:
    """A scenario leads the conversation, and nothing says how long."""
    led = case.user_simulator is not None and case.input.prompt is not None
    if led and case.max_turns is None and case.turn_limit is None:
        yield (
            ("user_simulator",),
            "the simulated user leads, and `max_turns` is missing",
            ("set `max_turns` (or `constraints.max_turns`): the most messages of the user's"),
        )


def without_use(case: Case) -> Iterator[tuple[Loc, str, str]]:
    """A scenario for which there is nobody to play it."""
    if case.user_simulator is not None and not needs_simulator(case):
        yield (
            ("user_simulator",),
            "`user_simulator` has no effect: no turn has `respond`",
            ("write `respond` in place of a turn's `content`, or leave it out"),
        )


def texts_of(case: Case) -> Iterator[tuple[Loc, str]]:
    """The texts of the user's part in which templates are filled in, with their places."""
    if case.user_simulator is not None:
        yield ("user_simulator", "scenario"), case.user_simulator.scenario
    if case.input.conversation is not None:
        chatter = case.input.conversation.chatter
        for name in Chatter.model_fields:
            yield from _texts(getattr(chatter, name), ("input", "conversation", "chatter", name))


def _texts(value: Any, loc: Loc) -> Iterator[tuple[Loc, str]]:
    if isinstance(value, str):
        yield loc, value
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _texts(item, (*loc, index))
    elif isinstance(value, dict):
        for name, item in value.items():
            yield from _texts(item, (*loc, name))


def _needed_at(case: Case) -> Loc:
    if case.input.conversation is not None:
        return ("input", "conversation")
    for index, turn in enumerate(case.input.turns or ()):
        if turn.respond is not None:
            return ("input", "turns", index, "respond")
    return ("user_simulator",) if case.user_simulator is not None else ("input",)
