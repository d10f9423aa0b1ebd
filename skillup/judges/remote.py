"""Asking models over the network, by way of pydantic-ai. Imported only when it comes to that.

An answer is the one call of the one tool that is offered, whose arguments the provider holds to the
form (``strict``); or, where a server knows no tools, a message that is one JSON object. What came
is looked at here and not by pydantic-ai, which takes the first fenced object out of a longer text.

The providers' clients retry what may succeed later (no connection, time-outs, status 5xx). A
refusal (rate limit, overload) is waited out here, with all who ask the same provider.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack, suppress
from dataclasses import field, replace
from datetime import timedelta
from importlib import import_module
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

import anyio
from pydantic_ai import exceptions as ai
from pydantic_ai import messages as msg
from pydantic_ai.direct import model_request, model_request_batch
from pydantic_ai.models import ModelRequestParameters, infer_model
from pydantic_ai.models.batch import BatchRequest
from pydantic_ai.providers import infer_provider_class
from pydantic_ai.tools import ToolDefinition

from skillup.dataclass import mutable
from skillup.judges.question import (
    CannotAskError,
    Endpoint,
    MalformedAnswerError,
    ModelAnswer,
    ModelQuestion,
    schema_of,
)
from skillup.ratelimit import RateLimiter
from skillup.schema.record import TurnError, Usage, total_cost, total_usage

if TYPE_CHECKING:
    from pydantic_ai.models import Model
    from pydantic_ai.usage import RequestUsage

DEFAULT_SECONDS = 60.0
RETRIES = 3
LONGEST_BODY = 4 << 20  # Bytes of a server's answer, unpacked; more is no answer
_LONGEST_PAUSE_SECONDS = 120.0  # For which a client waits at most between two tries
_REFUSALS = frozenset({429, 503, 529})
_MAY_REFUSE = ("temperature", "seed", "strict")
_NO_KEY = "none"  # Sent to servers that ask for no key: the client refuses to have none
_ASKED_AGAIN = 2  # How often a model is told that its answer is of the wrong form, and asked again
_AT_ONCE = 8  # Requests that may be under way
_WORTH_CACHING = 8_000  # Characters: of less, no provider that has to be told keeps anything
_QUIET_SECONDS = 1.0  # After the latest question, a batch is sent
_FIRST_PAUSE = timedelta(seconds=2)  # Before it is looked at; pauses grow to ten minutes
_TOOL = "answer"
_SHOWN = 300


async def _receive(response: Any) -> None:
    """The clients call it for each answer: reads all of it, but not without end."""
    body = bytearray()
    async for part in response.aiter_bytes():
        body += part
        if len(body) > LONGEST_BODY:
            await response.aclose()
            response.status_code = 413
            words = f"the answer of the server is longer than {LONGEST_BODY >> 20} MiB"
            body = bytearray(f'{{"error": {{"message": "{words}"}}}}'.encode())
            break
    response._content = bytes(body)  # noqa: SLF001  where `aread` keeps it
    if response.status_code in _REFUSALS:
        response.headers["x-should-retry"] = "false"  # what these clients go by


_WORDS: tuple[tuple[type[BaseException] | tuple[type[BaseException], ...], str], ...] = (
    (
        ai.ModelContextWindowExceededError,
        "{0}: what is judged is too long for it: set a smaller `window_size`, or choose "  # noqa: ISC004
        "another model: {1}",
    ),
    (ai.ModelNotFoundError, "{0}: there is no such model, or the `base_url` is wrong: {1}"),
    (
        (ai.ModelTimeoutError, ai.ModelRequestTimeout, TimeoutError),
        "{0} did not answer in time: set a longer `timeout_seconds`",
    ),
    (ai.ModelConnectionError, "{0} cannot be reached: {1}"),
    (ai.ModelHTTPError, "{0} answered with status {status}{wait}: {1}"),
    (ai.ContentFilterError, "{0} refused to answer: {1}"),
    ((CannotAskError, ai.UserError), "{0} was not asked: {1}"),
    ((ai.ModelAPIError, ai.OutputTokenLimitExceeded, MalformedAnswerError), "{0}: {1}"),
)


def explain(error: BaseException, model: str) -> str:
    """One or two lines for a user: what happened, what to do. Secrets are still in it."""
    words = _words(error)
    asked = getattr(error, "retry_after", None)
    wait = f"; it asks to wait {asked:g} s" if asked else ""
    for kinds, text in _WORDS:
        if isinstance(error, kinds):
            status = getattr(error, "status_code", None)
            said = text.format(model, words, wait=wait, status=status)
            return "; ".join([said, *getattr(error, "__notes__", ())])
    # A client trusts an answer to be what the API promises, and stumbles in many ways.
    what = "the answer of the server is not what the API promises"
    return f"{model}: {what} ({type(error).__name__}: {words}); is its `base_url` right?"


def _words(error: BaseException) -> str:
    """The provider's own message, out of the body that it came in."""
    body = getattr(error, "body", None)
    while isinstance(body, dict):
        inner = body.get("error", body.get("message"))
        if inner is None:
            break
        body = inner
    line = " ".join((body if isinstance(body, str) else str(error)).split())
    return line if len(line) <= _SHOWN else f"{line[: _SHOWN - 1]}…"


@mutable
class _Batch:
    requests: list[BatchRequest] = field(default_factory=list)
    outcomes: list[msg.ModelResponse | Exception] = field(default_factory=list)  # In the same order
    ended: anyio.Event = field(default_factory=anyio.Event)


@mutable
class Batches:
    """Those of one event loop. Who asks first sends a batch; cancelled, it cancels the batch."""

    say: Callable[[str], object]  # To the user
    _open: dict[Endpoint, _Batch] = field(default_factory=dict)

    async def ask(self, endpoint: Endpoint, model: Model, asked: Any) -> msg.ModelResponse:
        """The response to what is `asked`. Raises as if it had been asked alone."""
        batch = self._open.setdefault(endpoint, _Batch())
        place = len(batch.requests)
        batch.requests.append(BatchRequest(custom_id=f"question-{place}", **asked))
        if place == 0:
            await self._send(batch, endpoint, model)
        await batch.ended.wait()
        if isinstance(outcome := batch.outcomes[place], Exception):
            raise outcome
        return outcome

    async def _send(self, batch: _Batch, endpoint: Endpoint, model: Model) -> None:
        size = 0
        while size < len(batch.requests):
            size = len(batch.requests)
            await anyio.sleep(_QUIET_SECONDS)
        del self._open[endpoint]
        self.say(f"a batch for {endpoint.name} (requests: {size}); Ctrl-C cancels it")
        try:
            # What expired or was refused costs nothing: the next judging asks it again.
            batch.outcomes[:] = await model_request_batch(
                model, batch.requests, max_resubmissions=0, poll_interval=_FIRST_PAUSE
            )
        except Exception as error:  # noqa: BLE001  each of those who asked says why
            unknown = isinstance(error, ai.ModelHTTPError) and error.status_code in (404, 405, 501)
            what = f"{endpoint.base_url} knows no batches: judge without --batch"
            batch.outcomes[:] = [CannotAskError(what) if unknown else error] * size
        batch.ended.set()


@mutable
class RemoteModels:
    """Asks; what goes wrong is in the answers. To be used, and closed, in one event loop."""

    rate_limiter: RateLimiter  # All askers'
    batches: Batches | None = None  # Given: nobody is asked in another way
    _limiter: anyio.CapacityLimiter = field(default_factory=lambda: anyio.CapacityLimiter(_AT_ONCE))
    _providers: dict[tuple[str, str, str | None], Any] = field(default_factory=dict)
    _closing: AsyncExitStack = field(default_factory=AsyncExitStack)
    _refused: dict[tuple[str, str], set[str]] = field(default_factory=dict)
    """Settings that a model has refused, by its address and name."""
    _in_turn: WeakValueDictionary[object, anyio.Lock] = field(default_factory=WeakValueDictionary)
    """Of questions about one conversation, by all that they begin with."""

    async def close(self) -> None:
        self._providers.clear()
        await self._closing.aclose()

    async def ask(self, question: ModelQuestion, endpoint: Endpoint) -> ModelAnswer:
        name = question.model.model
        responses: list[msg.ModelResponse] = []
        sampling: dict[str, float] = {}
        try:
            value, error = await self._answer(question, endpoint, responses, sampling), None
        except Exception as trouble:  # noqa: BLE001  whatever a client raises is no verdict
            value, error = None, explain(trouble, name)
        usage = total_usage(_usage_of(response.usage) for response in responses)
        cost = total_cost(_price_of(response) for response in responses)
        named = next((one.model_name for one in reversed(responses) if one.model_name), name)
        took = Usage(**usage) if usage else None
        return ModelAnswer(value, error, took, cost, named, sampling=sampling)

    async def _answer(
        self,
        question: ModelQuestion,
        endpoint: Endpoint,
        responses: list[msg.ModelResponse],
        sampling: dict[str, float],
    ) -> Any:
        """Adds to `responses`, `sampling`. Raises MalformedAnswerError if that stays, and more."""
        content: list[msg.UserContent] = [question.prompt]
        begin, system, wrong = "" if self.batches else "".join(question.shared), question.system, ""
        turn = anyio.Lock()
        if endpoint.api == "anthropic" and len(begin) >= _WORTH_CACHING:
            # It compares whole blocks, and finds only what an earlier request has written.
            content = [*question.shared, msg.CachePoint(), question.prompt[len(begin) :]]
            schema = json.dumps(schema_of(question.form, question.ids))
            key = (endpoint.base_url, endpoint.key, endpoint.name, system, schema, content[0])
            turn = self._in_turn.setdefault(key, anyio.Lock())
        messages: list[msg.ModelMessage] = [
            msg.ModelRequest([msg.UserPromptPart(content)], instructions=system)
        ]
        for _ in range(1 + _ASKED_AGAIN):
            async with turn:
                response = await self._request(messages, question, endpoint, sampling)
            responses.append(response)
            try:
                return _read(response, question)
            except MalformedAnswerError as malformed:
                wrong = str(malformed)
            text = f"That is no answer: {wrong}. Answer again, with one call of `{_TOOL}` "
            text += "and nothing else."
            calls = [part for part in response.parts if isinstance(part, msg.ToolCallPart)]
            parts: list[msg.ModelRequestPart] = [
                msg.ToolReturnPart(call.tool_name, text, call.tool_call_id) for call in calls
            ]
            again = msg.ModelRequest(parts or [msg.UserPromptPart(text)], instructions=system)
            messages += [response, again]
        times = f"asked {1 + _ASKED_AGAIN} times"
        raise MalformedAnswerError(f"no answer of the form asked for: {times}: {wrong}")

    async def _request(
        self,
        messages: list[msg.ModelMessage],
        question: ModelQuestion,
        endpoint: Endpoint,
        sampling: dict[str, float],
    ) -> msg.ModelResponse:
        """The response, refusals waited out; a note on the last says why it is not asked again."""
        model = self._model(endpoint)
        throttle = self.rate_limiter.of_model(endpoint.base_url, endpoint.key)
        refused = self._refused.setdefault((endpoint.base_url, endpoint.name), set())
        schema = schema_of(question.form, question.ids)
        seconds = question.model.timeout_seconds or DEFAULT_SECONDS
        # The client's own limit is one for each read: a server that trickles has no end.
        longest = (1 + RETRIES) * (seconds + _LONGEST_PAUSE_SECONDS)
        while True:
            if await throttle.ready() is None:
                raise CannotAskError("the run has ended, and asks its provider nothing more")
            sampling.clear()
            left_out = {*refused}  # by this request; others are under way
            # Models that reason take no temperature, and of these APIs one alone takes a seed.
            profile: Mapping[str, object] = dict(model.profile)
            without = ("anthropic_disallows_sampling_settings", "openai_supports_reasoning")
            if "temperature" not in refused and not any(profile.get(name) for name in without):
                sampling["temperature"] = question.temperature
                if question.temperature and endpoint.api == "chat" and "seed" not in refused:
                    sampling["seed"] = question.seed * 1000 + question.sample
            tool = ToolDefinition(
                name=_TOOL,
                parameters_json_schema=schema,
                description="Your answer.",
                strict="strict" not in refused,
                kind="output",
            )
            parameters = ModelRequestParameters(
                output_mode="tool", output_tools=[tool], allow_text_output=False
            )
            asked: dict[str, Any] = {
                "messages": messages,
                "model_settings": sampling | ({} if self.batches else {"timeout": seconds}),
                "model_request_parameters": parameters,
            }
            try:
                if self.batches is not None:
                    response = await self.batches.ask(endpoint, model, asked)
                else:
                    async with self._limiter:
                        with anyio.fail_after(longest):
                            response = await model_request(model, **asked)
            except ai.ModelRequestRejectedError as error:
                words = _words(error)
                setting = next((name for name in _MAY_REFUSE if name in words), None)
                if setting is None or setting in left_out:
                    raise
                refused.add(setting)
            except ai.ModelHTTPError as error:
                final = isinstance(error, ai.ModelQuotaExceededError)
                if final or self.batches or error.status_code not in _REFUSALS:
                    raise
                refusal = TurnError(
                    kind="rate_limit" if error.status_code == 429 else "overloaded",
                    message=_words(error),
                    retry_after_seconds=error.retry_after,
                )
                why = throttle.refused(refusal)
                if why is not None:
                    error.add_note(why)
                    raise
            else:
                throttle.accepted()
                return response

    def _model(self, endpoint: Endpoint) -> Model:
        family = "anthropic" if endpoint.api == "anthropic" else "openai"
        key = (family, endpoint.base_url, endpoint.key)
        if key not in self._providers:
            sdk, provider_class = import_module(family), infer_provider_class(family)
            hooks = [] if self.batches else [_receive]  # one file has all answers of a batch
            client_class = sdk.AsyncAnthropic if family == "anthropic" else sdk.AsyncOpenAI
            client = client_class(
                api_key=endpoint.key or _NO_KEY,
                base_url=endpoint.base_url,
                max_retries=RETRIES,
                http_client=sdk.DefaultAsyncHttpxClient(event_hooks={"response": hooks}),
                **({"open_telemetry": False} if family == "anthropic" else {}),
            )
            self._closing.push_async_callback(client.close)
            self._providers[key] = provider_class(**{f"{family}_client": client})
        kind = endpoint.api if family == "anthropic" else f"openai-{endpoint.api}"
        return infer_model(f"{kind}:{endpoint.name}", lambda _: self._providers[key])


def _read(response: msg.ModelResponse, question: ModelQuestion) -> Any:
    """The answer in `response`. Raises MalformedAnswerError, and what a cut or filtered one is."""
    if response.finish_reason == "content_filter":
        details = response.provider_details or {}
        raise ai.ContentFilterError(str(details.get("refusal") or "the provider's filter"))
    if response.finish_reason == "length":
        raise ai.OutputTokenLimitExceeded("the answer was cut off for its length")
    calls = [part for part in response.parts if isinstance(part, msg.ToolCallPart)]
    text = "\n".join(p.content for p in response.parts if isinstance(p, msg.TextPart)).strip()
    if calls and (len(calls) > 1 or text or calls[0].tool_name != _TOOL):
        raise MalformedAnswerError(f"give exactly one call of `{_TOOL}`, and no text beside it")
    given: Any = calls[0].args if calls else text
    return question.read(given or "")


def _usage_of(usage: RequestUsage) -> Usage | None:
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


def _price_of(response: msg.ModelResponse) -> float | None:
    """None for a model or an address that has no known price."""
    with suppress(LookupError, ValueError):
        if response.model_name and _usage_of(response.usage) is not None:
            details = {**(response.provider_details or {})}
            share = 0.5 if details.pop("processing", None) == "batch" else 1.0
            return share * float(replace(response, provider_details=details).cost().total_price)
    return None
