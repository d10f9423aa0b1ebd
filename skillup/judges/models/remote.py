"""Asking models over the network, by way of pydantic-ai. Imported only when it comes to that.

An answer is the one call of the one tool that is offered, whose arguments the provider holds to the
form (``strict``); or, where a server knows no tools, a message that is one JSON object. What came
is looked at here and not by pydantic-ai, which takes the first fenced object out of a longer text.

The providers' clients retry what may succeed later (no connection, time-outs, status 5xx). A
refusal (rate limit, overload) is waited out here, with all who ask the same provider.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, suppress
from contextvars import ContextVar
from dataclasses import dataclass, replace
from email.utils import parsedate_to_datetime
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeVar

import anyio
from pydantic_ai import exceptions as ai
from pydantic_ai.direct import model_request
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelRequestPart,
    ModelResponse,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.settings import ModelSettings
from pydantic_ai.tools import ToolDefinition

from skillup.judges.models.endpoint import CannotAskError, Endpoint
from skillup.judges.models.question import (
    EmbeddingQuestion,
    MalformedAnswerError,
    ModelAnswer,
    ModelQuestion,
    Question,
    schema_of,
)
from skillup.ratelimit import RateLimiter
from skillup.schema.record import TurnError, Usage, total_cost, total_usage

if TYPE_CHECKING:
    from pydantic_ai.models import Model
    from pydantic_ai.usage import RequestUsage

T = TypeVar("T")
DEFAULT_SECONDS = 60.0
RETRIES = 3
LONGEST_BODY = 4 << 20
"""Bytes of a server's answer, unpacked; more is no answer."""
LONGEST_WAIT_SECONDS = 60.0
"""A server that asks (``Retry-After``) for a longer one is not waited for by its client."""
_REFUSALS = frozenset({429, 503, 529})
_NO_KEY = "none"
"""Sent to servers that ask for no key: the client refuses to have none."""
_ASKED_AGAIN = 2
"""How often a model is told that its answer is of the wrong form, and asked again."""
_TOOL = "answer"
_SHOWN = 300
_STUMBLES = (AttributeError, LookupError, TypeError, ValueError, ArithmeticError, AssertionError)
"""What a client runs into that trusts an answer to be what the API promises."""

# What a server sends: read up to a length, and kept for the error if it is none of its API's.


class UnpromisedAnswerError(Exception):
    """A server's answer is not of the form that its API promises; the text is its beginning."""


@dataclass(slots=True)
class _Received:
    """What came of the latest request of this task."""

    paced: bool
    """Refusals are waited out, and are not to be retried by the client."""
    seconds: float
    body: str | None = None
    """The beginning of an answer that claims to be a right one."""
    too_long: bool = False
    refused: bool = False


_RECEIVED: ContextVar[_Received] = ContextVar("received")


async def _receive(response: Any) -> None:
    """The clients call it for each answer: reads all of it, but not without end."""
    received, headers = _RECEIVED.get(), response.headers
    body = bytearray()
    with anyio.fail_after(received.seconds):
        async for part in response.aiter_bytes():
            body += part
            if len(body) > LONGEST_BODY:
                received.too_long = True
                body.clear()
                await response.aclose()
                break
    response._content = bytes(body)  # noqa: SLF001  where `aread` keeps it
    if response.is_success:
        received.body = body[:2_000].decode("utf-8", "replace")
        return
    wait, text = 0.0, headers.get("retry-after", "")
    with suppress(ValueError, TypeError):
        dated = text and not text.replace(".", "", 1).isdigit()
        wait = parsedate_to_datetime(text).timestamp() - time.time() if dated else float(text)
    # The word of OpenAI's and Anthropic's servers to their clients: `false` is no retry.
    again = headers.get("x-should-retry") != "false"
    received.refused = response.status_code in _REFUSALS and again
    if (received.refused and received.paced) or wait > LONGEST_WAIT_SECONDS:
        headers["x-should-retry"] = "false"


# What a user reads where there is no answer.


class RefusedError(Exception):
    """A refused request that is not made again; the text says why, the cause is the refusal."""


_WORDS: tuple[tuple[type[BaseException] | tuple[type[BaseException], ...], str], ...] = (
    (ai.ModelAuthenticationError, "{0} does not accept the key: {1}"),
    (ai.ModelQuotaExceededError, "{0}: the account has no credit left: {1}"),
    (
        ai.ModelContextWindowExceededError,
        "{0}: what is judged is too long for it: set a smaller `window_size`, or choose "  # noqa: ISC004
        "another model: {1}",
    ),
    (ai.ModelNotFoundError, "{0}: there is no such model, or the `base_url` is wrong: {1}"),
    (ai.ModelRateLimitError, "{0} refuses for the rate of requests{wait}: {1}"),
    (
        (ai.ModelTimeoutError, ai.ModelRequestTimeout, TimeoutError),
        "{0} did not answer in time: set a longer `timeout_seconds`",
    ),
    (ai.ModelConnectionError, "{0} cannot be reached: {1}"),
    (ai.ModelHTTPError, "{0} answered with status {status}: {1}"),
    (ai.ContentFilterError, "{0} refused to answer: {1}"),
    (
        (ai.OutputTokenLimitExceeded, ai.IncompleteToolCall),
        "{0}: the answer was cut off for its length: {1}",
    ),
    (CannotAskError, "{0} was not asked: {1}"),
    (
        (ai.UnexpectedModelBehavior, MalformedAnswerError),
        "{0} gave no answer of the form asked for: {1}",
    ),
)


def explain(error: BaseException, model: str) -> str:
    """One or two lines for a user: what happened, what to do. Secrets are still in it."""
    if isinstance(error, RefusedError) and error.__cause__ is not None:
        return f"{explain(error.__cause__, model)}; {error}"
    if isinstance(error, UnpromisedAnswerError):
        what = f": {_short(str(error))}" if str(error).strip() else " (it is empty)"
        return f"{model}: the answer of the server is not what the API promises{what}"
    words = _words(error) if isinstance(error, ai.ModelAPIError) else _short(str(error))
    asked = getattr(error, "retry_after", None)
    wait = f"; it asks to wait {asked:g} s" if asked else ""
    for kinds, text in _WORDS:
        if isinstance(error, kinds):
            status = getattr(error, "status_code", None)
            return text.format(model, words, wait=wait, status=status)
    return f"{model} could not be asked: {type(error).__name__}: {words}"


def _words(error: ai.ModelAPIError) -> str:
    """The provider's own message, out of the body that it came in."""
    body = error.body
    while isinstance(body, dict):
        inner = body.get("error", body.get("message"))
        if inner is None:
            break
        body = inner
    return _short(body if isinstance(body, str) else error.message)


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _SHOWN else f"{line[: _SHOWN - 1]}…"


class RemoteModels:
    """Asks; what goes wrong is in the answers. To be used, and closed, in one event loop.

    There is one client for each address and key, opened at first use; all are closed together.
    """

    def __init__(self, limiter: anyio.CapacityLimiter, rate_limiter: RateLimiter) -> None:
        """`limiter` bounds the requests under way at once; `rate_limiter` is all askers'."""
        self._limiter = limiter
        self._rate_limiter = rate_limiter
        self._providers: dict[tuple[bool, str, str | None], Any] = {}
        self._closing = AsyncExitStack()
        self._refused: dict[tuple[str, str], set[str]] = {}
        """Settings that a model has refused, by its address and name."""

    async def close(self) -> None:
        """Closes every connection."""
        self._providers.clear()
        await self._closing.aclose()

    async def ask(self, question: Question, endpoint: Endpoint) -> ModelAnswer:
        """The answer of the model at `endpoint`."""
        name = question.model.model
        responses: list[ModelResponse] = []
        try:
            if isinstance(question, EmbeddingQuestion):
                return await self._embed(question, endpoint)
            value, error = await self._answer(question, endpoint, responses), None
        except Exception as trouble:  # noqa: BLE001  whatever a client raises is no verdict
            value, error = None, explain(trouble, name)
        usage = total_usage(_usage_of(response.usage) for response in responses)
        cost = total_cost(_price_of(response) for response in responses)
        named = next((one.model_name for one in reversed(responses) if one.model_name), name)
        return ModelAnswer(value, error, Usage(**usage) if usage else None, cost, named)

    async def _answer(
        self, question: ModelQuestion, endpoint: Endpoint, responses: list[ModelResponse]
    ) -> Any:
        """Raises MalformedAnswerError if it stays malformed, and whatever clients do."""
        prompt, system = UserPromptPart(question.prompt), question.system
        messages: list[ModelMessage] = [ModelRequest([prompt], instructions=system)]
        wrong = ""
        for _ in range(1 + _ASKED_AGAIN):
            response = await self._request(messages, question, endpoint)
            responses.append(response)
            try:
                return _read(response, question)
            except MalformedAnswerError as malformed:
                wrong = str(malformed)
            text = f"That is no answer: {wrong}. Answer again, with one call of `{_TOOL}` "
            text += "and nothing else."
            calls = [part for part in response.parts if isinstance(part, ToolCallPart)]
            parts: list[ModelRequestPart] = [
                ToolReturnPart(call.tool_name, text, call.tool_call_id) for call in calls
            ]
            again = ModelRequest(parts or [UserPromptPart(text)], instructions=system)
            messages += [response, again]
        raise MalformedAnswerError(f"asked {1 + _ASKED_AGAIN} times: {wrong}")

    async def _request(
        self, messages: list[ModelMessage], question: ModelQuestion, endpoint: Endpoint
    ) -> ModelResponse:
        model = self._model(endpoint)
        seconds = question.model.timeout_seconds or DEFAULT_SECONDS
        refused = self._refused.setdefault((endpoint.base_url, endpoint.name), set())
        schema = schema_of(question.form, question.ids)
        tool = ToolDefinition(
            name=_TOOL, parameters_json_schema=schema, description="Your answer.", strict=True,
            kind="output",
        )  # fmt: skip

        async def request() -> ModelResponse:
            settings = ModelSettings(timeout=seconds)
            # An answer should be the same again; models that reason take no temperature.
            profile: Mapping[str, object] = dict(model.profile)
            refusing = ("anthropic_disallows_sampling_settings", "openai_supports_reasoning")
            if "temperature" not in refused and not any(profile.get(name) for name in refusing):
                settings["temperature"] = 0.0
            offered = replace(tool, strict=False) if "strict" in refused else tool
            parameters = ModelRequestParameters(
                output_mode="tool", output_tools=[offered], allow_text_output=False
            )
            return await model_request(
                model, messages, model_settings=settings, model_request_parameters=parameters
            )

        while True:
            try:
                return await self._paced(endpoint, seconds, request)
            except ai.ModelRequestRejectedError as error:
                words = _words(error)
                setting = next((name for name in ("temperature", "strict") if name in words), None)
                if setting is None or setting in refused:
                    raise
                refused.add(setting)

    async def _embed(self, question: EmbeddingQuestion, endpoint: Endpoint) -> ModelAnswer:
        from pydantic_ai.embeddings.openai import OpenAIEmbeddingModel
        from pydantic_ai.providers.openai import OpenAIProvider

        seconds = question.model.timeout_seconds or DEFAULT_SECONDS
        client = self._provider(endpoint).client.with_options(timeout=seconds)
        model = OpenAIEmbeddingModel(endpoint.name, provider=OpenAIProvider(openai_client=client))

        async def request() -> Any:
            return await model.embed(list(question.texts), input_type="document")

        result = await self._paced(endpoint, seconds, request)
        vectors = question.read([list(vector) for vector in result.embeddings])
        usage, cost = _usage_of(result.usage), None
        with suppress(LookupError, ValueError):  # a model that has no known price
            cost = float(result.cost().total_price) if usage is not None else None
        return ModelAnswer(vectors, None, usage, cost, result.model_name)

    async def _paced(
        self, endpoint: Endpoint, seconds: float, request: Callable[[], Awaitable[T]]
    ) -> T:
        """What `request` yields, made again for as long as its provider's refusals are waited out.

        Raises RefusedError if they are not any more; CannotAskError if the run has ended.
        """
        throttle = self._rate_limiter.of_model(endpoint.base_url, endpoint.key)
        paced = self._rate_limiter.wait_seconds > 0
        while True:
            if await throttle.ready() is None:
                raise CannotAskError("the run has ended, and asks its provider nothing more")
            received = _Received(paced, seconds)
            _RECEIVED.set(received)
            try:
                # The client's own limit is one for each read: a server that trickles has no end.
                longest = (1 + RETRIES) * (2 * seconds + LONGEST_WAIT_SECONDS)
                async with self._limiter:
                    with anyio.fail_after(longest):
                        answer = await request()
            except (*_STUMBLES, ai.UnexpectedModelBehavior, ai.ModelAPIError) as error:
                # Their own kinds are more than that: a status, no connection, a refusal, …
                plain = type(error) in (ai.UnexpectedModelBehavior, ai.ModelAPIError)
                if received.too_long:
                    what = f"it is longer than {LONGEST_BODY >> 20} MiB"
                    raise UnpromisedAnswerError(what) from error
                if isinstance(error, _STUMBLES) or (received.body is not None and plain):
                    raise UnpromisedAnswerError(received.body or "") from error
                final = isinstance(error, ai.ModelQuotaExceededError)
                if not isinstance(error, ai.ModelHTTPError) or final:
                    raise
                if not (paced and received.refused):
                    raise
                refusal = TurnError(
                    kind="rate_limit" if error.status_code == 429 else "overloaded",
                    message=_words(error),
                    retry_after_seconds=error.retry_after,
                )
                why = throttle.refused(refusal)
                if why is not None:
                    raise RefusedError(why) from error
            else:
                throttle.accepted()
                return answer

    def _model(self, endpoint: Endpoint) -> Model:
        provider = self._provider(endpoint)
        if endpoint.api == "anthropic":
            from pydantic_ai.models.anthropic import AnthropicModel

            return AnthropicModel(endpoint.name, provider=provider)
        from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel

        kind = OpenAIChatModel if endpoint.api == "chat" else OpenAIResponsesModel
        return kind(endpoint.name, provider=provider)

    def _provider(self, endpoint: Endpoint) -> Any:
        anthropic = endpoint.api == "anthropic"
        key = (anthropic, endpoint.base_url, endpoint.key)
        if key in self._providers:
            return self._providers[key]
        family, name = ("anthropic", "Anthropic") if anthropic else ("openai", "OpenAI")
        sdk: Any = import_module(family)
        client = getattr(sdk, f"Async{name}")(
            api_key=endpoint.key or _NO_KEY,
            base_url=endpoint.base_url,
            max_retries=RETRIES,
            http_client=sdk.DefaultAsyncHttpxClient(event_hooks={"response": [_receive]}),
            **({"open_telemetry": False} if anthropic else {}),
        )
        provider = getattr(import_module(f"pydantic_ai.providers.{family}"), f"{name}Provider")
        self._providers[key] = provider(**{f"{family}_client": client})
        self._closing.push_async_callback(client.close)
        return self._providers[key]


def _read(response: ModelResponse, question: ModelQuestion) -> Any:
    """The answer in `response`. Raises MalformedAnswerError, and what a cut or filtered one is."""
    if response.finish_reason == "content_filter":
        details = response.provider_details or {}
        raise ai.ContentFilterError(str(details.get("refusal") or "the provider's filter"))
    if response.finish_reason == "length":
        raise ai.OutputTokenLimitExceeded("the model ran out of tokens")
    calls = [part for part in response.parts if isinstance(part, ToolCallPart)]
    text = "\n".join(p.content for p in response.parts if isinstance(p, TextPart)).strip()
    if len(calls) > 1:
        raise MalformedAnswerError("there are several answers in one message; give exactly one")
    if calls and text:
        raise MalformedAnswerError("there is text beside the answer; give the answer alone")
    if calls and calls[0].tool_name != _TOOL:
        raise MalformedAnswerError(f"there is no tool {calls[0].tool_name}; call {_TOOL}")
    given: Any = calls[0].args if calls else text
    return question.read(given or "")


def _usage_of(usage: RequestUsage) -> Usage | None:
    """In our words; None where the provider reported nothing."""
    if not usage.input_tokens and not usage.output_tokens:
        return None
    return Usage(
        input_tokens=usage.input_tokens,
        cached_input_tokens=usage.cache_read_tokens,
        cache_write_tokens=usage.cache_write_tokens,
        output_tokens=usage.output_tokens,
        reasoning_tokens=usage.details.get("reasoning_tokens"),
        requests=1,
    )


def _price_of(response: ModelResponse) -> float | None:
    """None for a model or an address that has no known price."""
    with suppress(LookupError, ValueError):
        if response.model_name and _usage_of(response.usage) is not None:
            return float(response.cost().total_price)
    return None
