"""What went wrong with a request: whether it may be tried again, and what a user is told."""

from __future__ import annotations

from pydantic_ai import exceptions as ai

from skillup.judges.models.failures import CannotAskError
from skillup.judges.models.received import UnpromisedAnswerError
from skillup.schema.record import TurnError

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
_SHOWN = 300


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
    return line if len(line) <= _SHOWN else f"{line[: _SHOWN - 1]}…"
