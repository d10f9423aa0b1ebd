"""What a server sent, kept for the error if it is not what its API promises."""

from __future__ import annotations

from contextvars import ContextVar
from typing import Protocol

_LONGEST = 2_000


class UnpromisedAnswerError(Exception):
    """A server's answer is not of the form that its API promises; the text is its beginning."""


class _Response(Protocol):
    @property
    def is_success(self) -> bool: ...

    async def aread(self) -> bytes: ...


class Received:
    """The beginning of the latest answer that claims to be a right one."""

    def __init__(self) -> None:
        self._body: bytes | None = None

    @property
    def is_there(self) -> bool:
        """Whether there was one."""
        return self._body is not None

    def text(self) -> str:
        """As text, whatever it is; empty: none came."""
        return (self._body or b"").decode("utf-8", "replace")

    def keep(self, body: bytes) -> None:
        """Takes the place of what was there."""
        self._body = body[:_LONGEST]


_RECEIVED: ContextVar[Received | None] = ContextVar("received", default=None)


def received() -> Received:
    """Where the answer to the request that is made next, in this task, will be."""
    found = Received()
    _RECEIVED.set(found)
    return found


async def keep_beginning(response: _Response) -> None:
    """To be called by the HTTP client for each answer."""
    found = _RECEIVED.get()
    if found is not None and response.is_success:
        found.keep(await response.aread())
