"""What a server sent: read up to a length, and kept for the error if it is none of its API's."""

from __future__ import annotations

from contextvars import ContextVar
from typing import Any

_SHOWN = 2_000
LONGEST_BODY = 4 << 20
"""Bytes of a server's answer, unpacked; more is no answer."""


class UnpromisedAnswerError(Exception):
    """A server's answer is not of the form that its API promises; the text is its beginning."""


class Received:
    """The beginning of the latest answer that claims to be a right one."""

    def __init__(self) -> None:
        self._body: bytes | None = None
        self.too_long = False

    @property
    def is_there(self) -> bool:
        """Whether there was one."""
        return self._body is not None

    def text(self) -> str:
        """As text, whatever it is; empty: none came."""
        if self.too_long:
            return f"it is longer than {LONGEST_BODY >> 20} MiB"
        return (self._body or b"").decode("utf-8", "replace")

    def keep(self, body: bytes) -> None:
        """Takes the place of what was there."""
        self._body = body[:_SHOWN]


_RECEIVED: ContextVar[Received | None] = ContextVar("received", default=None)


def received() -> Received:
    """Where the answer to the request that is made next, in this task, will be."""
    found = Received()
    _RECEIVED.set(found)
    return found


async def read_bounded(response: Any) -> None:
    """To be called by the HTTP client for each answer: reads all of it, but not without end.

    Raises UnpromisedAnswerError for one that is too long, however small it was packed.
    """
    found = _RECEIVED.get()
    body = bytearray()
    async for part in response.aiter_bytes():
        body += part
        if len(body) > LONGEST_BODY:
            if found is not None:
                found.too_long = True
            raise UnpromisedAnswerError(f"it is longer than {LONGEST_BODY >> 20} MiB")
    response._content = bytes(body)  # noqa: SLF001  where `aread` keeps it
    if found is not None and response.is_success:
        found.keep(response.content)
