"""Requests made with patience: a limit of time, several attempts, only so many at once."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, TypeVar

import anyio
from pydantic_ai import exceptions as ai
from pydantic_ai.exceptions import ModelAPIError, ModelRequestTimeout

from skillup.judges.models.endpoint import CannotAskError
from skillup.ratelimit.slow_down import Passage
from skillup.schema.record import TurnError

# How long a model that is out of breath is waited for.


@dataclass(frozen=True, slots=True)
class RetryPatience:
    """A fixed number of attempts at each request, and the waits between them, in seconds.

    Refusals (rate limit, overload) are no attempts, where they are waited out by all who ask there
    (:class:`skillup.ratelimit.slow_down.Pacing`).
    """

    attempts: int = 4
    first_wait: float = 1.0
    """Before the second attempt; each later wait is twice as long."""
    longest_wait: float = 30.0
    longest_asked_wait: float = 60.0
    """A server that asks (``Retry-After``) for a longer one is not waited for at all."""

    def wait_before(self, attempt: int, asked: float | None) -> float | None:
        """The wait before `attempt` (2, 3, …); None: not to be tried any more.

        The server's wish `asked` is a lower bound. A random part keeps those apart that were
        refused together.
        """
        if attempt > self.attempts or (asked or 0.0) > self.longest_asked_wait:
            return None
        longest = min(self.longest_wait, self.first_wait * 2.0 ** (attempt - 2))
        wait = longest * random.uniform(0.5, 1.0)  # noqa: S311  no secret depends on it
        return max(wait, (asked or 0.0) + 0.1 * wait)


# What a server sent: read up to a length, and kept for the error if it is none of its API's.

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


# What went wrong with a request: whether it may be tried again, and what a user is told.

_TEMPORARY = (
    ai.ModelRateLimitError,
    ai.ModelUnavailableError,
    ai.ModelServerError,
    ai.ModelConnectionError,
    ai.ModelRequestTimeout,
)
_RATE_LIMIT = 429
_TEMPORARY_STATUS = frozenset({408, 409, 425, _RATE_LIMIT})
_OVERLOADED = frozenset({503, 529})
_SHOWN_ERRORS_OF_MODELS = 300


def is_temporary(error: ai.ModelAPIError) -> bool:
    """Whether the same request may succeed later."""
    if isinstance(error, ai.ModelQuotaExceededError):
        return False
    if isinstance(error, ai.ModelHTTPError):
        if error.provider_retry_hint is not None:
            return error.provider_retry_hint
        if error.status_code in _TEMPORARY_STATUS or error.status_code >= 500:
            return True
    return isinstance(error, _TEMPORARY)


def refusal_of(error: ai.ModelAPIError) -> TurnError | None:
    """The provider wants fewer requests for now, as agents' errors say it; None: it does not."""
    if not isinstance(error, ai.ModelHTTPError) or not is_temporary(error):
        return None
    limited = isinstance(error, ai.ModelRateLimitError) or error.status_code == _RATE_LIMIT
    if not limited and error.status_code not in _OVERLOADED:
        return None
    return TurnError(
        kind="rate_limit" if limited else "overloaded",
        message=_said(error),
        retry_after_seconds=error.retry_after,
    )


def refused_setting(error: ai.ModelAPIError) -> str | None:
    """The setting (`temperature`, `strict`) without which the model takes the request."""
    if not isinstance(error, ai.ModelRequestRejectedError):
        return None
    said = _said(error)
    return next((name for name in ("temperature", "strict") if name in said), None)


def explain(error: Exception, model: str, *, attempts: int = 1) -> str:
    """One or two lines for a user: what happened, what to do. Secrets are still in it."""
    often = f" ({attempts} attempts)" if attempts > 1 else ""
    match error:
        case ai.ModelAuthenticationError():
            return f"{model} does not accept the key: {_said(error)}"
        case ai.ModelQuotaExceededError():
            return f"{model}: the account has no credit left: {_said(error)}"
        case ai.ModelContextWindowExceededError():
            return (
                f"{model}: what is judged is too long for this model: set a smaller `window_size`, "
                f"or choose another one: {_said(error)}"
            )
        case ai.ModelNotFoundError():
            return f"{model}: there is no such model, or the `base_url` is wrong: {_said(error)}"
        case ai.ModelRateLimitError():
            asked = f"; it asks to wait {error.retry_after:g} s" if error.retry_after else ""
            return f"{model} refuses for the rate of requests{asked}{often}: {_said(error)}"
        case ai.ModelTimeoutError() | ai.ModelRequestTimeout():
            return f"{model} did not answer in time{often}: set a longer `timeout_seconds`"
        case ai.ModelConnectionError():
            return f"{model} cannot be reached{often}: {_short(error.message)}"
        case ai.ModelHTTPError():
            return f"{model} answered with status {error.status_code}{often}: {_said(error)}"
        case ai.ContentFilterError():
            return f"{model} refused to answer: {_short(error.message)}"
        case ai.OutputTokenLimitExceeded() | ai.IncompleteToolCall():
            return f"{model}: the answer was cut off for its length: {_short(error.message)}"
        case UnpromisedAnswerError():
            what = f": {_short(str(error))}" if str(error).strip() else " (it is empty)"
            return f"{model}: the answer of the server is not what the API promises{what}"
        case CannotAskError():
            return f"{model} was not asked: {error}"
        case ai.UnexpectedModelBehavior():
            return f"{model} gave no answer of the form asked for: {_reason(error)}"
        case _:
            return f"{model} could not be asked: {type(error).__name__}: {_short(str(error))}"


def _said(error: ai.ModelAPIError) -> str:
    """The provider's own message, out of the body that it came in."""
    body = error.body
    while isinstance(body, dict):
        inner = body.get("error", body.get("message"))
        if inner is None:
            break
        body = inner
    return _short(body if isinstance(body, str) else error.message)


def _reason(error: Exception) -> str:
    """The error, and what the last answer lacked where that is known."""
    said = _short(getattr(error, "message", str(error)))
    cause = error.__cause__
    return f"{said}: {_short(str(cause))}" if cause is not None and str(cause) else said


def _short(text: str) -> str:
    line = " ".join(text.split())
    return (
        line if len(line) <= _SHOWN_ERRORS_OF_MODELS else f"{line[: _SHOWN_ERRORS_OF_MODELS - 1]}…"
    )


T = TypeVar("T")


@dataclass(slots=True)
class Attempts:
    """The attempts at the requests of one question.

    They are counted here and not in the provider's client, so that they are the same with every
    provider, and none of the places is taken while one waits.
    """

    limiter: anyio.CapacityLimiter
    patience: RetryPatience
    passage: Callable[[], Passage]
    """To the provider, for one request."""
    waits: bool
    """Refusals are waited out, with all others who ask there, and are no attempts."""
    seconds: float
    """How long each attempt may take, once it is its turn."""
    made: int = 0
    """At the latest request."""
    given_up: str = ""
    """Why the latest request, which was refused, is not made again."""

    async def make(self, model: str, request: Callable[[], Awaitable[T]]) -> T:
        """What `request` yields. Raises its last ModelAPIError once patience is at its end.

        Raises CannotAskError if the request is not to be made any more.
        """
        self.made, self.given_up = 0, ""
        refused = 0
        passage = self.passage()
        while True:
            if not await passage.ready():
                raise CannotAskError("the run has ended, and asks its provider nothing more")
            self.made += 1
            try:
                answer = await self._once(model, request)
            except ModelAPIError as error:
                refusal = refusal_of(error) if self.waits else None
                if refusal is not None:
                    why = await passage.refused(refusal)
                    if why is not None:
                        self.given_up = why
                        raise
                    refused += 1
                    continue
                wait = None
                if is_temporary(error):
                    wait = self.patience.wait_before(self.made - refused + 1, error.retry_after)
                if wait is None:
                    raise
                await anyio.sleep(wait)
            else:
                await passage.accepted()
                return answer

    async def _once(self, model: str, request: Callable[[], Awaitable[T]]) -> T:
        async with self.limiter:
            try:
                with anyio.fail_after(self.seconds):
                    return await request()
            except TimeoutError as error:
                raise ModelRequestTimeout(model, self.seconds) from error
