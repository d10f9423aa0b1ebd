"""What those who watch a trial are told: what its agent does, and what a turn took."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from skillup.schema.record import TranscriptItem, TurnRecord
from skillup.trial.request import TrialEvent
from skillup.trial.sums import sum_of_costs, sum_of_usage

# For the eye: whoever wants all of it reads the record. An event may travel between machines.
_CHARACTERS = 8000


class AgentWatcher:
    """The `Progress` and `ItemWatcher` of a trial: passes on what its agent does."""

    def __init__(self, job: str, notify: Callable[[TrialEvent], None]) -> None:
        self._job = job
        self._notify = notify

    def __call__(self, text: str) -> None:
        """The agent is doing something."""
        self._notify(TrialEvent(self._job, "activity", text=text))

    def item(self, item: TranscriptItem) -> None:
        """The transcript has one item more."""
        self._notify(TrialEvent(self._job, "item", item=shortened(item)))


def shortened(item: TranscriptItem) -> TranscriptItem:
    """`item` with its long texts cut."""
    update: dict[str, Any] = {}
    if item.text is not None:
        update["text"] = _cut(item.text)
    if item.tool_result is not None:
        content = _cut(item.tool_result.content)
        update["tool_result"] = item.tool_result.model_copy(update={"content": content})
    if item.tool_call is not None:
        arguments = {
            name: _cut(value) if isinstance(value, str) else value
            for name, value in item.tool_call.arguments.items()
        }
        update["tool_call"] = item.tool_call.model_copy(update={"arguments": arguments})
    return item.model_copy(update=update)


def _cut(text: str) -> str:
    return text if len(text) <= _CHARACTERS else f"{text[:_CHARACTERS]}\n…"


def spent_in(turn: TurnRecord) -> tuple[int | None, float | None]:
    """Tokens (input and output) and cost of a turn's messages; None where none of them told."""
    messages = [turn, *turn.follow_ups]
    usage = sum_of_usage(message.usage for message in messages)
    cost = sum_of_costs(message.cost_usd for message in messages)
    return (usage.tokens() if usage is not None else None), cost
