"""Asking models: masked, from the cache where possible, each question once at a time."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import anyio
from pydantic import TypeAdapter, ValidationError

from skillup.judges.models.attempts import RetryPatience
from skillup.judges.models.cache import AnswerCache, CachedQuestion, StoredAnswer, key_of
from skillup.judges.models.endpoint import (
    CannotAskError,
    embeddings_endpoint_of,
    endpoint_of,
    parse_model,
)
from skillup.judges.models.question import (
    EmbeddingAnswer,
    ModelAnswer,
    ModelQuestion,
    asked_of,
    embeddings_asked_of,
    is_scripted,
)
from skillup.judges.models.scripted import ScriptedModels
from skillup.load.expand import judge_settings
from skillup.ratelimit.slow_down import OwnPacing, Pacing
from skillup.schema.case import Case
from skillup.schema.judge import JudgeModel
from skillup.schema.suite import Suite
from skillup.store.journal import to_json

if TYPE_CHECKING:
    from skillup.judges.models.remote import RemoteModels


# Work that several want at once is done once.

T = TypeVar("T")


class _Flight(Generic[T]):
    def __init__(self) -> None:
        self.landed = anyio.Event()
        self.result: list[T] = []


class SingleFlight(Generic[T]):
    """What is under way, by key. To be used in one event loop."""

    def __init__(self) -> None:
        self._under_way: dict[str, _Flight[T]] = {}

    async def join(self, key: str, work: Callable[[], Awaitable[T]]) -> tuple[T, bool]:
        """The result of `work`, and whether it was someone else's with the same key.

        If whoever does it is cancelled, or fails, one of those who wait takes over.
        """
        while (flight := self._under_way.get(key)) is not None:
            await flight.landed.wait()
            if flight.result:
                return flight.result[0], True
        flight = self._under_way[key] = _Flight()
        try:
            result = await work()
            flight.result.append(result)
            return result, False
        finally:
            del self._under_way[key]
            flight.landed.set()


_VECTORS: TypeAdapter[list[list[float]]] = TypeAdapter(list[list[float]])


@dataclass(frozen=True, slots=True)
class ModelOptions:
    """How models are asked."""

    environment: Mapping[str, str]
    """The user's own; keys and addresses are taken from it."""
    mask: Callable[[str], str]
    """Hides secrets: from the models that are asked, too."""
    cache: AnswerCache = field(default_factory=lambda: AnswerCache(None, None))
    at_once: int = 8
    """Requests that may be under way at the same time."""
    patience: RetryPatience = field(default_factory=RetryPatience)
    pacing: Pacing = field(default_factory=OwnPacing)
    """The ways to providers, shared with whoever else asks them."""


@dataclass(frozen=True, slots=True)
class ModelContext:
    """From where a question is asked."""

    suite_root: Path
    suite: str
    trial: str | None = None
    of_grade: bool = False
    """It is asked for the trial's grade, not while its conversation is held."""
    goes_on: bool = False
    """That grade goes on with what an earlier process has asked for it."""

    def asked_for(self) -> str | None:
        """The trial whose grade counts what an answer takes; None: it counts with the record."""
        return key_of({"trial": self.trial}) if self.of_grade and self.trial is not None else None


class Models:
    """Every model, whoever provides it.

    Before it is used in another event loop it must be closed in the one before.
    """

    def __init__(self, options: ModelOptions) -> None:
        self._options = options
        self._remote: RemoteModels | None = None
        self._scripted = ScriptedModels()
        self._answers: SingleFlight[ModelAnswer] = SingleFlight()
        self._embeddings: SingleFlight[EmbeddingAnswer] = SingleFlight()
        self._failed: dict[tuple[str | None, str], ModelAnswer] = {}
        """By trial and question, until :meth:`close`."""
        self._failed_embeddings: dict[tuple[str | None, str], EmbeddingAnswer] = {}

    @property
    def answers(self) -> AnswerCache:
        """Where answers are kept."""
        return self._options.cache

    @property
    def pacing(self) -> Pacing:
        """The ways to providers, for agents that judge or play the user, too."""
        return self._options.pacing

    def seen_from(
        self,
        suite_root: Path,
        *,
        suite: str | None = None,
        trial: str | None = None,
        of_grade: bool = False,
        goes_on: bool = False,
    ) -> Asker:
        """For the questions of one suite: files of written-down judges are looked for there.

        `suite` tells suites apart, wherever they are now: the root as records have it; default:
        `suite_root`. What could not be answered is not asked again for the same `trial`, which any
        text may name: a conversation and its grade must not be judged by different answers.
        `of_grade` and `goes_on` are those of the ledger that it is counted in.
        """
        seen = ModelContext(suite_root, suite or str(suite_root), trial, of_grade, goes_on)
        return Asker(self, seen)

    def problem(self, model: JudgeModel, suite_root: Path) -> str | None:
        """Why `model` could not be asked, found without asking it; None: nothing is known."""
        try:
            if is_scripted(model.model):
                self._scripted.script(_script_file(model.model, suite_root))
            else:
                endpoint_of(model, self._options.environment)
        except CannotAskError as problem:
            return self._options.mask(str(problem))
        return None

    def embedding_problem(self, model: str, like: JudgeModel) -> str | None:
        """The same of the embedding model `model`, which is reached as `like` is."""
        try:
            embeddings_endpoint_of(model, like, self._options.environment)
        except CannotAskError as problem:
            return self._options.mask(str(problem))
        return None

    async def close(self) -> None:
        """Closes every connection, also when cancelled."""
        remote, self._remote = self._remote, None
        self._failed.clear()
        self._failed_embeddings.clear()
        if remote is not None:
            with anyio.CancelScope(shield=True):
                await remote.close()

    async def ask(self, question: ModelQuestion, seen: ModelContext) -> ModelAnswer:
        """See :class:`~skillup.judges.models.question.AskModel`."""
        # What a model is asked is what the record will say: without secrets. So a replay, which
        # has nothing but the record, asks the same.
        texts = self._clean({"system": question.system, "prompt": question.prompt})
        question = replace(question, system=texts["system"], prompt=texts["prompt"])
        asked = asked_of(question, seen.suite, self._options.environment, self._clean)
        failed = self._failed.get((seen.trial, asked.key))
        if failed is not None:
            return replace(failed, cached=True)

        async def work() -> ModelAnswer:
            return await self._ask(question, seen, asked)

        answer, shared = await self._answers.join(asked.key, work)
        if answer.value is None:
            if seen.trial is not None:
                self._failed[seen.trial, asked.key] = answer
            return answer
        return replace(answer, cached=True) if shared else answer

    async def _ask(
        self, question: ModelQuestion, seen: ModelContext, asked: CachedQuestion
    ) -> ModelAnswer:
        stored = await anyio.to_thread.run_sync(self._options.cache.read, asked)
        known = _as_answer(stored, question) if stored is not None else None
        if known is not None and stored is not None:
            return replace(known, cached=not await self._takes_over(seen, asked, stored))
        try:
            if is_scripted(question.model.model):
                file = _script_file(question.model.model, seen.suite_root)
                answer = await anyio.to_thread.run_sync(self._scripted.ask, question, file)
            else:
                access = endpoint_of(question.model, self._options.environment)
                answer = await self._over_the_network().ask(question, access)
        except CannotAskError as problem:
            answer = ModelAnswer(None, str(problem), model=question.model.model)
        if answer.value is None:
            return replace(answer, error=self._options.mask(answer.error or ""))
        data = self._clean(answer.value.model_dump(mode="json", by_alias=True))
        kept = StoredAnswer(
            asked=asked.own,
            answer=data,
            model=answer.model,
            usage=answer.usage,
            cost_usd=answer.cost_usd,
            asked_for=seen.asked_for(),
        )
        await anyio.to_thread.run_sync(self._options.cache.write, asked, kept)
        masked = _as_answer(kept, question)
        return replace(answer, value=masked.value) if masked is not None else answer

    async def embed(
        self, model: str, texts: Sequence[str], like: JudgeModel, seen: ModelContext
    ) -> EmbeddingAnswer:
        """See :class:`~skillup.judges.models.question.AskModel`."""
        texts = self._clean(list(texts))
        asked = embeddings_asked_of(model, texts, like, self._options.environment, self._clean)
        failed = self._failed_embeddings.get((seen.trial, asked.key))
        if failed is not None:
            return replace(failed, cached=True)

        async def work() -> EmbeddingAnswer:
            return await self._embed(model, texts, like, seen, asked)

        answer, shared = await self._embeddings.join(asked.key, work)
        if answer.vectors is None:
            if seen.trial is not None:
                self._failed_embeddings[seen.trial, asked.key] = answer
            return answer
        return replace(answer, cached=True) if shared else answer

    async def _embed(
        self,
        model: str,
        texts: Sequence[str],
        like: JudgeModel,
        seen: ModelContext,
        asked: CachedQuestion,
    ) -> EmbeddingAnswer:
        stored = await anyio.to_thread.run_sync(self._options.cache.read, asked)
        known = _as_embedding(stored) if stored is not None else None
        if known is not None and stored is not None:
            return replace(known, cached=not await self._takes_over(seen, asked, stored))
        try:
            access = embeddings_endpoint_of(model, like, self._options.environment)
            seconds = like.timeout_seconds
            answer = await self._over_the_network().embed(access, texts, seconds)
        except CannotAskError as problem:
            answer = EmbeddingAnswer(None, str(problem), model=model)
        if answer.vectors is None:
            return replace(answer, error=self._options.mask(answer.error or ""))
        kept = StoredAnswer(
            asked=asked.own,
            answer=[list(vector) for vector in answer.vectors],
            model=answer.model,
            usage=answer.usage,
            cost_usd=answer.cost_usd,
            asked_for=seen.asked_for(),
        )
        await anyio.to_thread.run_sync(self._options.cache.write, asked, kept)
        return answer

    async def _takes_over(
        self, seen: ModelContext, asked: CachedQuestion, stored: StoredAnswer
    ) -> bool:
        """Whether it was asked for just this grade, which an earlier process did not come to."""
        if not seen.goes_on or stored.asked_for is None or stored.asked_for != seen.asked_for():
            return False
        return await anyio.to_thread.run_sync(self._options.cache.take_over, asked)

    def _over_the_network(self) -> RemoteModels:
        if self._remote is None:
            from skillup.judges.models.remote import RemoteModels

            limiter = anyio.CapacityLimiter(self._options.at_once)
            self._remote = RemoteModels(limiter, self._options.patience, self._options.pacing)
        return self._remote

    def _clean(self, data: Any) -> Any:
        """`data` as it will be read back from a file: masked, and valid text."""
        return json.loads(to_json({"": data}, self._options.mask, indent=None))[""]


class Asker:
    """:class:`~skillup.judges.models.question.AskModel` for the questions of one suite."""

    def __init__(self, models: Models, seen: ModelContext) -> None:
        self._models = models
        self._seen = seen

    async def ask(self, question: ModelQuestion) -> ModelAnswer:
        """The answer, from the cache or from the model."""
        return await self._models.ask(question, self._seen)

    async def embed(self, model: str, texts: Sequence[str], like: JudgeModel) -> EmbeddingAnswer:
        """The vectors of `texts`."""
        return await self._models.embed(model, texts, like, self._seen)


def _script_file(model: str, suite_root: Path) -> Path:
    """Raises CannotAskError if no file is named."""
    return suite_root / parse_model(model).name


def _as_answer(stored: StoredAnswer, question: ModelQuestion) -> ModelAnswer | None:
    """None: what is stored is not of the form that is asked for."""
    try:
        value = question.answer.model_validate(stored.answer)
    except ValidationError:
        return None
    return ModelAnswer(value, None, stored.usage, stored.cost_usd, stored.model, cached=True)


def _as_embedding(stored: StoredAnswer) -> EmbeddingAnswer | None:
    try:
        vectors = _VECTORS.validate_python(stored.answer)
    except ValidationError:
        return None
    return EmbeddingAnswer(vectors, None, stored.usage, stored.cost_usd, stored.model, cached=True)


# Which model reads for a case: the one asked for, else the case's own, else the fallback.

FALLBACK_VARIABLE = "SKILLUP_JUDGE_MODEL"
"""Names the model for cases that name none."""


def with_judge_model(
    case: Case, asked: str | None, fallback: str | None = None, suite: Suite | None = None
) -> Case:
    """`case` as it is judged; what its record then says is enough to judge it again.

    `asked` outranks the case's own model. The address and the key of that are not the other's; how
    it is asked is, or what the judges of the case and of its `suite` say where they name none.
    """
    own = case.judge_model
    name = asked or (fallback if own is None else None)
    if not name:
        return case
    if own is not None:
        settings = {"timeout_seconds": own.timeout_seconds, "repeat": own.repeat}
    else:
        settings = judge_settings(case, suite)
    model = JudgeModel.model_validate({"model": name, **settings})
    return case.model_copy(update={"judge_model": model})
