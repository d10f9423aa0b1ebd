"""Asking models over the network, by way of pydantic-ai. Imported only when it comes to that."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

import anyio
from pydantic import BaseModel
from pydantic_ai import Agent, ModelRetry, RunContext
from pydantic_ai.messages import ModelResponse, ToolCallPart
from pydantic_ai.settings import ModelSettings

from skillup.judges.models.access import Access
from skillup.judges.models.account import usage_of
from skillup.judges.models.attempts import Attempts
from skillup.judges.models.errors_of_models import explain
from skillup.judges.models.patience import Patience
from skillup.judges.models.persistent import PersistentModel
from skillup.judges.models.providers import Providers
from skillup.judges.models.question import EmbeddingAnswer, ModelAnswer, ModelQuestion
from skillup.trial.pacing import Pacing

if TYPE_CHECKING:
    from pydantic_ai.embeddings import EmbeddingResult
    from pydantic_ai.models import Model

DEFAULT_SECONDS = 60.0
_ASKED_AGAIN = 2
"""How often a model is told that its answer is of the wrong form, and asked again."""


class RemoteModels:
    """Asks; what goes wrong is in the answers. To be used, and closed, in one event loop."""

    def __init__(self, limiter: anyio.CapacityLimiter, patience: Patience, pacing: Pacing) -> None:
        """`limiter` bounds the requests that are under way at once; `pacing` is all askers'."""
        self._limiter = limiter
        self._patience = patience
        self._pacing = pacing
        self._providers = Providers()
        self._without_temperature: set[tuple[str, str]] = set()
        """Models that have refused it."""

    async def close(self) -> None:
        """Closes every connection."""
        await self._providers.close()

    async def ask(self, question: ModelQuestion, access: Access) -> ModelAnswer:
        """The answer of the model at `access`."""
        name, known = question.model.model, (access.base_url, access.name)
        attempts = self._attempts(access, question.model.timeout_seconds)
        model: PersistentModel | None = None
        value, error = None, None
        try:
            model = PersistentModel(
                self._providers.model(access),
                attempts,
                takes_temperature=known not in self._without_temperature,
            )
            # Named, because a nameless agent looks through the stack for its own name.
            agent = Agent(
                model,
                name="judge",
                output_type=question.answer,
                instructions=question.system,
                retries=_ASKED_AGAIN,
                model_settings=_settings(model.wrapped, attempts.seconds),
            )
            agent.output_validator(_only_one)
            value = (await agent.run(question.prompt)).output
        except Exception as trouble:  # noqa: BLE001  whatever a client raises is no verdict
            error = _explained(trouble, name, attempts)
        if model is None:
            return ModelAnswer(None, error, model=name)
        if not model.takes_temperature:
            self._without_temperature.add(known)
        account = model.account
        return ModelAnswer(value, error, account.usage(), account.cost_usd(), account.model or name)

    async def embed(
        self, access: Access, texts: Sequence[str], seconds: float | None
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

    def _attempts(self, access: Access, seconds: float | None) -> Attempts:
        return Attempts(
            self._limiter,
            self._patience,
            passage=partial(self._pacing.of_model, access.base_url, access.key),
            waits=self._pacing.patience_seconds > 0,
            seconds=seconds or DEFAULT_SECONDS,
        )


async def _only_one(context: RunContext[object], value: BaseModel) -> BaseModel:
    """Raises ModelRetry if the message has several answers: none of them is the one meant."""
    latest = next((m for m in reversed(context.messages) if isinstance(m, ModelResponse)), None)
    if latest is not None and sum(isinstance(part, ToolCallPart) for part in latest.parts) > 1:
        raise ModelRetry("You gave several answers in one message; give exactly one.")
    return value


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
