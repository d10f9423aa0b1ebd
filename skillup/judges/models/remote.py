"""Asking models over the network, by way of pydantic-ai. Imported only when it comes to that.

An answer is the one call of the one tool that is offered, whose arguments the provider holds to the
form (``strict``); or, where a server knows no tools, a message that is one JSON object. What came
is looked at here and not by pydantic-ai, which takes the first fenced object out of a longer text.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import anyio
from pydantic import BaseModel, ValidationError
from pydantic_ai.direct import model_request
from pydantic_ai.exceptions import (
    ContentFilterError,
    ModelAPIError,
    OutputTokenLimitExceeded,
    UnexpectedModelBehavior,
)
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

from skillup.judges.models.attempts import (
    Attempts,
    RetryPatience,
    UnpromisedAnswerError,
    explain,
    read_bounded,
    received,
    refused_setting,
)
from skillup.judges.models.endpoint import Endpoint
from skillup.judges.models.question import (
    Account,
    EmbeddingAnswer,
    ModelAnswer,
    ModelQuestion,
    usage_of,
)
from skillup.judges.strict_json import DoubtfulJsonError, only_object
from skillup.ratelimit.slow_down import Pacing

if TYPE_CHECKING:
    from pydantic_ai.embeddings import EmbeddingModel, EmbeddingResult
    from pydantic_ai.models import Model


# The providers' clients: one for each address and key, opened at first use, closed together.

_NO_KEY = "none"
"""Sent to servers that ask for no key: the client refuses to have none."""
_HOOKS: dict[str, list[Any]] = {"response": [read_bounded]}


class Providers:
    """Models of clients that are shared. To be used, and closed, in one event loop."""

    def __init__(self) -> None:
        self._open: dict[tuple[str, str, str | None], Any] = {}
        self._closing = AsyncExitStack()

    def model(self, access: Endpoint) -> Model:
        """The model at `access`."""
        match access.api:
            case "anthropic":
                from pydantic_ai.models.anthropic import AnthropicModel

                return AnthropicModel(access.name, provider=self._anthropic(access))
            case "chat":
                from pydantic_ai.models.openai import OpenAIChatModel

                return OpenAIChatModel(access.name, provider=self._openai(access))
            case "responses":
                from pydantic_ai.models.openai import OpenAIResponsesModel

                return OpenAIResponsesModel(access.name, provider=self._openai(access))

    def embedding_model(self, access: Endpoint) -> EmbeddingModel:
        """The embedding model at `access`, which is one of the OpenAI family."""
        from pydantic_ai.embeddings.openai import OpenAIEmbeddingModel

        return OpenAIEmbeddingModel(access.name, provider=self._openai(access))

    async def close(self) -> None:
        """Closes every connection."""
        self._open.clear()
        await self._closing.aclose()

    def _anthropic(self, access: Endpoint) -> Any:
        from anthropic import AsyncAnthropic, DefaultAsyncHttpxClient
        from pydantic_ai.providers.anthropic import AnthropicProvider

        key = ("anthropic", access.base_url, access.key)
        if key not in self._open:
            client = AsyncAnthropic(
                api_key=access.key,
                base_url=access.base_url,
                max_retries=0,
                open_telemetry=False,
                http_client=DefaultAsyncHttpxClient(event_hooks=_HOOKS),
            )
            self._closing.push_async_callback(client.close)
            self._open[key] = AnthropicProvider(anthropic_client=client)
        return self._open[key]

    def _openai(self, access: Endpoint) -> Any:
        from openai import AsyncOpenAI, DefaultAsyncHttpxClient
        from pydantic_ai.providers.openai import OpenAIProvider

        key = ("openai", access.base_url, access.key)
        if key not in self._open:
            client = AsyncOpenAI(
                api_key=access.key or _NO_KEY,
                base_url=access.base_url,
                max_retries=0,
                http_client=DefaultAsyncHttpxClient(event_hooks=_HOOKS),
            )
            self._closing.push_async_callback(client.close)
            self._open[key] = OpenAIProvider(openai_client=client)
        return self._open[key]


DEFAULT_SECONDS = 60.0
_ASKED_AGAIN = 2
"""How often a model is told that its answer is of the wrong form, and asked again."""
_TOOL = "answer"
_STUMBLES = (AttributeError, LookupError, TypeError, ValueError, ArithmeticError, AssertionError)
"""What a client runs into that trusts an answer to be what the API promises."""


class _MalformedError(Exception):
    """An answer is not one JSON object of the form; the message says what is wrong."""


class RemoteModels:
    """Asks; what goes wrong is in the answers. To be used, and closed, in one event loop."""

    def __init__(
        self, limiter: anyio.CapacityLimiter, patience: RetryPatience, pacing: Pacing
    ) -> None:
        """`limiter` bounds the requests that are under way at once; `pacing` is all askers'."""
        self._limiter = limiter
        self._patience = patience
        self._pacing = pacing
        self._providers = Providers()
        self._refused: dict[tuple[str, str], set[str]] = {}
        """Settings that a model has refused, by its address and name."""

    async def close(self) -> None:
        """Closes every connection."""
        await self._providers.close()

    async def ask(self, question: ModelQuestion, access: Endpoint) -> ModelAnswer:
        """The answer of the model at `access`."""
        name = question.model.model
        attempts = self._attempts(access, question.model.timeout_seconds)
        account = Account()
        value, error = None, None
        try:
            value = await self._answer(question, access, attempts, account)
        except Exception as trouble:  # noqa: BLE001  whatever a client raises is no verdict
            error = _explained(trouble, name, attempts)
        return ModelAnswer(value, error, account.usage(), account.cost_usd(), account.model or name)

    async def _answer(
        self, question: ModelQuestion, access: Endpoint, attempts: Attempts, account: Account
    ) -> BaseModel:
        """Raises UnexpectedModelBehavior if it stays malformed, and whatever clients do."""
        model = self._providers.model(access)
        prompt = UserPromptPart(question.prompt)
        said: list[ModelMessage] = [ModelRequest([prompt], instructions=question.system)]
        wrong = ""
        for _ in range(1 + _ASKED_AGAIN):
            response = await self._request(model, said, question, access, attempts)
            account.add(response)
            try:
                return _read(response, question)
            except _MalformedError as malformed:
                wrong = str(malformed)
            said += [response, _complaint(response, wrong, question.system)]
        raise UnexpectedModelBehavior(f"asked {1 + _ASKED_AGAIN} times: {wrong}")

    async def _request(
        self,
        model: Model,
        said: list[ModelMessage],
        question: ModelQuestion,
        access: Endpoint,
        attempts: Attempts,
    ) -> ModelResponse:
        """What the model answers. Raises ModelAPIError once patience is at its end."""
        refused = self._refused.setdefault((access.base_url, access.name), set())
        form = question.schema()
        tool = ToolDefinition(
            name=_TOOL, parameters_json_schema=form, description="Your answer.", strict=True,
            kind="output",
        )  # fmt: skip

        async def request() -> ModelResponse:
            settings = _settings(model, attempts.seconds)
            if "temperature" in refused:
                settings.pop("temperature", None)
            offered = replace(tool, strict=False) if "strict" in refused else tool
            parameters = ModelRequestParameters(
                output_mode="tool", output_tools=[offered], allow_text_output=False
            )
            body = received()
            try:
                return await model_request(
                    model, said, model_settings=settings, model_request_parameters=parameters
                )
            except (*_STUMBLES, UnexpectedModelBehavior, ModelAPIError) as error:
                # Their own kinds are more than that: a status, no connection, a refusal, …
                plain = type(error) in (UnexpectedModelBehavior, ModelAPIError)
                if body.too_long or isinstance(error, _STUMBLES) or (body.is_there and plain):
                    raise UnpromisedAnswerError(body.text()) from error
                raise

        while True:
            try:
                return await attempts.make(access.name, request)
            except ModelAPIError as error:
                setting = refused_setting(error)
                if setting is None or setting in refused:
                    raise
                refused.add(setting)

    async def embed(
        self, access: Endpoint, texts: Sequence[str], seconds: float | None
    ) -> EmbeddingAnswer:
        """The vectors of `texts` by the embedding model at `access`."""
        attempts = self._attempts(access, seconds)

        async def request() -> EmbeddingResult:
            model = self._providers.embedding_model(access)
            return await model.embed(list(texts), input_type="document")

        try:
            result = await attempts.make(access.name, request)
        except Exception as trouble:  # noqa: BLE001  as above
            error = _explained(trouble, access.name, attempts)
            return EmbeddingAnswer(None, error, model=access.name)
        return _embedding_answer(result, len(texts), access.name)

    def _attempts(self, access: Endpoint, seconds: float | None) -> Attempts:
        return Attempts(
            self._limiter,
            self._patience,
            passage=partial(self._pacing.of_model, access.base_url, access.key),
            waits=self._pacing.patience_seconds > 0,
            seconds=seconds or DEFAULT_SECONDS,
        )


def _read(response: ModelResponse, question: ModelQuestion) -> BaseModel:
    """The answer in `response`. Raises _MalformedError, and what a cut or filtered one is."""
    if response.finish_reason == "content_filter":
        details = response.provider_details or {}
        raise ContentFilterError(str(details.get("refusal") or "the provider's filter"))
    if response.finish_reason == "length":
        raise OutputTokenLimitExceeded("the model ran out of tokens")
    calls = [part for part in response.parts if isinstance(part, ToolCallPart)]
    texts = [part.content for part in response.parts if isinstance(part, TextPart)]
    text = "\n".join(texts).strip()
    if len(calls) > 1:
        raise _MalformedError("there are several answers in one message; give exactly one")
    if calls and text:
        raise _MalformedError("there is text beside the answer; give the answer alone")
    if calls and calls[0].tool_name != _TOOL:
        raise _MalformedError(f"there is no tool {calls[0].tool_name}; call {_TOOL}")
    given: Any = calls[0].args if calls else text
    try:
        told = given if isinstance(given, dict) else only_object(given or "")
        value = question.answer.model_validate(told)
    except DoubtfulJsonError as doubt:
        raise _MalformedError(str(doubt)) from None
    except ValidationError as error:
        wrong = [
            f"{'.'.join(map(str, one['loc']))}: {one['msg']}".removeprefix(": ")
            for one in error.errors(include_url=False)[:5]
        ]
        raise _MalformedError("; ".join(wrong)) from None
    if (problem := question.lacks(value)) is not None:
        raise _MalformedError(problem)
    return value


def _complaint(response: ModelResponse, wrong: str, system: str) -> ModelRequest:
    """Tells the model what is wrong with its answer."""
    text = f"That is no answer: {wrong}. Answer again, with one call of `{_TOOL}` and nothing else."
    calls = [part for part in response.parts if isinstance(part, ToolCallPart)]
    parts: list[ModelRequestPart] = [
        ToolReturnPart(call.tool_name, text, call.tool_call_id) for call in calls
    ]
    return ModelRequest(parts or [UserPromptPart(text)], instructions=system)


def _explained(trouble: Exception, model: str, attempts: Attempts) -> str:
    said = explain(trouble, model, attempts=attempts.made)
    return f"{said}; {attempts.given_up}" if attempts.given_up else said


def _settings(model: Model, seconds: float) -> ModelSettings:
    """Temperature 0 for those that are not known to refuse it: an answer should be the same again.

    Models that reason take no temperature; which these are, pydantic-ai knows.
    """
    # The client's own limit must not be the shorter one; ours is what the user was told.
    settings = ModelSettings(timeout=seconds + 5.0)
    profile: Mapping[str, object] = dict(model.profile)
    refusing = ("anthropic_disallows_sampling_settings", "openai_supports_reasoning")
    if not any(profile.get(name) for name in refusing):
        settings["temperature"] = 0.0
    return settings


def _embedding_answer(result: EmbeddingResult, wanted: int, model: str) -> EmbeddingAnswer:
    if len(result.embeddings) != wanted:
        error = f"{model} gave {len(result.embeddings)} vectors for {wanted} texts"
        return EmbeddingAnswer(None, error, model=model)
    usage = usage_of(result.usage)
    try:
        cost = float(result.cost().total_price) if usage is not None else None
    except (LookupError, ValueError):
        cost = None  # a model that has no known price
    return EmbeddingAnswer(result.embeddings, None, usage, cost, result.model_name)
