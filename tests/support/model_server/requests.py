"""One model request as the script and the tests see it, whichever API it came by."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, NamedTuple

Role = Literal["user", "assistant", "call", "result", "harness"]

# Our call ids carry the tool round, so that parallel calls count as one round in any order that a
# CLI may store and send them in.
_ROUND = re.compile(r"_r(\d+)_")


class Entry(NamedTuple):
    """One step of the conversation.

    `role`: `user` is what a person wrote; `harness` is what the CLI put in by itself (reminders,
    environment, skill listings and bodies, developer messages); `call` has the text
    `NAME JSON-ARGUMENTS`; `result` is a tool's output. `call_id` is set for the last two.
    """

    role: Role
    text: str
    call_id: str = ""


@dataclass(frozen=True)
class ModelRequest:
    """One request for a model's answer.

    `headers` have lower-case names. `background` requests are the CLI's own (titles, summaries);
    the server answers them itself and no script sees them. `attempt` counts the earlier requests
    with the same session and conversation: 0 at first, 1 at the first retry. `session_id` is the
    one that the CLI sends along; `cwd` the working directory that it tells the model, or `""`.
    """

    api: Literal["anthropic", "openai", "openai_chat"]
    path: str
    headers: Mapping[str, str]
    body: dict[str, Any]
    entries: tuple[Entry, ...]
    tools: tuple[str, ...]
    session_id: str
    cwd: str
    stream: bool
    background: bool = False
    attempt: int = field(default=0, compare=False)

    @cached_property
    def conversation(self) -> list[tuple[str, str]]:
        """The steps of the conversation without what the CLI put in: `(role, text)`."""
        return [(entry.role, entry.text) for entry in self.entries if entry.role != "harness"]

    @cached_property
    def user_texts(self) -> list[str]:
        """What persons wrote, in order; the turn number is the length of this list."""
        return [entry.text for entry in self.entries if entry.role == "user"]

    @cached_property
    def assistant_texts(self) -> list[str]:
        """What the model answered earlier, in order."""
        return [entry.text for entry in self.entries if entry.role == "assistant"]

    @property
    def latest(self) -> str:
        """The latest user text, or `""`."""
        return self.user_texts[-1] if self.user_texts else ""

    @cached_property
    def tool_results(self) -> list[str]:
        """The tool outputs since the latest user text, in the order of the calls.

        Claude sends the results of parallel calls in the order in which they ended.
        """
        entries = self._since_latest()
        calls = [entry.call_id for entry in entries if entry.role == "call"]
        order = {call_id: number for number, call_id in enumerate(calls)}
        results = [entry for entry in entries if entry.role == "result"]
        results.sort(key=lambda entry: order.get(entry.call_id, len(order)))
        return [entry.text for entry in results]

    @cached_property
    def tool_round(self) -> int:
        """How many model answers with tool calls there were since the latest user text."""
        ids = [entry.call_id for entry in self._since_latest() if entry.role == "call"]
        tags = [_ROUND.search(call_id) for call_id in ids]
        return len({tag[1] if tag else call_id for tag, call_id in zip(tags, ids, strict=True)})

    @cached_property
    def system(self) -> str:
        """Every text that the CLI put in, in order, joined by newlines."""
        return "\n".join(entry.text for entry in self.entries if entry.role == "harness")

    @property
    def model(self) -> str:
        """The model's name as sent."""
        return str(self.body.get("model", ""))

    @cached_property
    def raw_text(self) -> str:
        """The whole body as readable text, for searches for what must not have leaked."""
        return json.dumps(self.body, ensure_ascii=False)

    def _since_latest(self) -> list[Entry]:
        users = [n for n, entry in enumerate(self.entries) if entry.role == "user"]
        return list(self.entries[users[-1] + 1 :] if users else self.entries)
