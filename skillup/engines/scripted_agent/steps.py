"""The steps of a reply, done one after the other, seen in the events and kept in the session."""

from __future__ import annotations

import time

from skillup.engines.scripted_agent.errors import AgentError
from skillup.engines.scripted_agent.placeholders import Placeholders
from skillup.engines.scripted_agent.sessions import AgentSession
from skillup.engines.scripted_agent.stream import Stream
from skillup.engines.scripted_agent.tools import ToolError, Tools

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class Steps:
    """Takes the steps of one turn. Each tool call, and the answer, is a request to the "model"."""

    def __init__(
        self,
        stream: Stream,
        session: AgentSession,
        placeholders: Placeholders,
        tools: Tools,
        limit: int | None,
    ) -> None:
        self.taken = 0
        self._stream = stream
        self._session = session
        self._placeholders = placeholders
        self._tools = tools
        self._limit = limit
        self._turn = len(session.exchanges)

    def take(self, step: dict[str, Any]) -> None:
        """Does one step. Raises AgentError if it cannot be attempted."""
        fill = self._placeholders.fill
        if step.get("say"):
            self._both("message", text=fill(step["say"]))
        elif step.get("run"):
            self._use("shell", command=fill(step["run"]))
        elif step.get("write"):
            write = step["write"]
            self._use("write_file", path=fill(write["path"]), content=fill(write["content"]))
        elif step.get("read"):
            self._use("read_file", path=fill(step["read"]))
        elif step.get("skill"):
            self._use("skill", skill=fill(step["skill"]))
        elif step.get("remember"):
            values = {name: fill(value) for name, value in step["remember"].items()}
            self._session.add("remember", values=values)
        elif step.get("delay"):
            time.sleep(step["delay"])

    def count(self) -> None:
        """One more request. Raises AgentError `max_turns` if that is one too many."""
        if self._limit is not None and self.taken >= self._limit:
            raise AgentError("max_turns", f"the limit of {self._limit} steps was reached")
        self.taken += 1

    def _use(self, name: str, **arguments: str) -> None:
        self.count()
        call_id = f"call_{self._turn}_{self.taken}"
        self._both("tool_call", id=call_id, name=name, input=arguments)
        try:
            status, output = "success", self._tools.use(name, arguments)
        except ToolError as error:
            status, output = "error", str(error)
        if name != "write_file":
            self._placeholders.output = output
        self._both("tool_result", id=call_id, status=status, output=output)

    def _both(self, kind: str, **fields: Any) -> None:
        self._session.add(kind, **fields)
        self._stream.event(kind, **fields)
