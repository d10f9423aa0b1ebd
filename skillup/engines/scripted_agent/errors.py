"""What ends a turn without an answer."""

from __future__ import annotations


class AgentError(Exception):
    """Reported in the result event as ``{kind, message}``; the kinds are those of the package."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message
