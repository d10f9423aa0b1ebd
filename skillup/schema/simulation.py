"""Which cases need a simulated user, what it is to do there, and which model plays it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from skillup.schema.case import Case
from skillup.schema.conversation import Chatter, Turn
from skillup.schema.judge import JudgeModel
from skillup.schema.suite import UserSimulator

_PROTOCOLS = ("anthropic", "openai")


@dataclass(frozen=True, slots=True)
class Lead:
    """A conversation that a simulated user leads."""

    max_turns: int
    """The most turns, the first message of the case included."""
    opening: str | None = None
    """The case's own first message (skill-up's `prompt`); None: the user writes that, too."""
    must_end: bool = False
    """A user that wants to go on beyond `max_turns` is an error, not the conversation's end."""


def lead_of(case: Case) -> Lead | None:
    """How a simulated user leads `case`; None: its turns are written down.

    With skill-up's `scenario` beside a `prompt`, `max_turns` counts messages, not the agent's
    steps, where there is no `turn_limit`; a case that lacks both does not validate.
    """
    if case.input.conversation is not None:
        return Lead(case.input.conversation.max_turns)
    if case.user_simulator is not None and case.input.prompt is not None:
        most = case.turn_limit or case.max_turns or 1
        return Lead(most, case.input.prompt, must_end=case.turn_limit is not None)
    return None


def chatter_of(case: Case) -> Chatter | None:
    """The part that the case writes for its user; None: a scenario or an instruction is all."""
    return case.input.conversation.chatter if case.input.conversation is not None else None


def needs_simulator(case: Case) -> bool:
    """Whether somebody must play the user."""
    return lead_of(case) is not None or _any_respond(case.input.all_turns())


def _any_respond(turns: Sequence[Turn]) -> bool:
    return any(
        turn.respond is not None or any(_any_respond(branch.turns) for branch in turn.branches)
        for turn in turns
    )


def playing_model(given: UserSimulator | None, case: Case) -> JudgeModel | None:
    """The model that plays the user: the suite's own, else the one that judges; None: nobody.

    skill-up names a model by `model` and `protocol` or `provider`.
    """
    given = given or UserSimulator()
    if given.model:
        return JudgeModel(
            model=_full_name(given.model, given),
            base_url=given.base_url or None,
            api_key_env=given.api_key_env,
            timeout_seconds=given.timeout_seconds,
        )
    if case.judge_model is None:
        return None
    timeout = given.timeout_seconds or case.judge_model.timeout_seconds
    return case.judge_model.model_copy(update={"repeat": 1, "timeout_seconds": timeout})


def _full_name(model: str, given: UserSimulator) -> str:
    if ":" in model:
        return model
    for protocol in (given.protocol, given.provider):
        if protocol in _PROTOCOLS:
            return f"{protocol}:{model}"
    provider, slash, name = model.partition("/")
    return f"{provider}:{name}" if slash and provider in _PROTOCOLS else model
