"""Asking models: masked, from the cache where possible, each question once at a time."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import anyio.to_thread

from skillup.judges.models.cache import (
    AnswerCache,
    CachedQuestion,
    StoredAnswer,
    as_stored,
    key_of,
)
from skillup.judges.models.endpoint import (
    CannotAskError,
    address_of,
    endpoint_of,
    is_scripted,
    parse_model,
)
from skillup.judges.models.question import (
    EmbeddingQuestion,
    MalformedAnswerError,
    ModelAnswer,
    ModelQuestion,
    Question,
)
from skillup.judges.models.scripted import ScriptedModels
from skillup.load.model import judge_settings
from skillup.ratelimit import RateLimiter
from skillup.schema.case import Case
from skillup.schema.judge import JudgeModel
from skillup.schema.suite import Suite

if TYPE_CHECKING:
    from skillup.judges.models.remote import RemoteModels


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
    rate_limiter: RateLimiter = field(default_factory=RateLimiter)
    """The ways to providers, shared with whoever else asks them."""


@dataclass(frozen=True, slots=True)
class ModelContext:
    """From where a question is asked."""

    suite_root: Path
    """Files of written-down judges are looked for there."""
    suite: str
    """Tells suites apart, wherever they are now: the root as records have it."""
    trial: str | None = None
    """What could not be answered is not asked again for the same one: a conversation and its grade
    must not be judged by different answers."""
    of_grade: bool = False
    resumed: bool = False
    """These two are those of the :class:`~skillup.judges.usage.UsageTracker` it is counted in."""

    def asked_for(self) -> str | None:
        """The trial whose grade counts what an answer takes; None: it counts with the record."""
        return key_of({"trial": self.trial}) if self.of_grade and self.trial is not None else None


@dataclass(slots=True)
class _Flight:
    """A question that is under way."""

    landed: anyio.Event = field(default_factory=anyio.Event)
    answer: ModelAnswer | None = None


class Models:
    """Every model, whoever provides it.

    Before it is used in another event loop it must be closed in the one before.
    """

    def __init__(self, options: ModelOptions) -> None:
        self._options = options
        self._remote: RemoteModels | None = None
        self._scripted = ScriptedModels()
        self._under_way: dict[str, _Flight] = {}
        self._failed: dict[tuple[str | None, str], ModelAnswer] = {}
        """By trial and question, until :meth:`close`."""

    @property
    def answers(self) -> AnswerCache:
        """Where answers are kept."""
        return self._options.cache

    @property
    def rate_limiter(self) -> RateLimiter:
        """The ways to providers, for agents that judge or play the user, too."""
        return self._options.rate_limiter

    def seen_from(self, suite_root: Path, *, suite: str | None = None, **context: Any) -> Asker:
        """For the questions of one suite; see :class:`ModelContext`."""
        return Asker(self, ModelContext(suite_root, suite or str(suite_root), **context))

    def problem(
        self, model: JudgeModel, suite_root: Path, *, embeddings: bool = False
    ) -> str | None:
        """Why `model` could not be asked, found without asking it; None: nothing is known."""
        try:
            if is_scripted(model.model) and not embeddings:
                self._scripted.script(suite_root / parse_model(model.model)[1])
            else:
                endpoint_of(model, self._options.environment, embeddings=embeddings)
        except CannotAskError as problem:
            return self._options.mask(str(problem))
        return None

    async def close(self) -> None:
        """Closes every connection, also when cancelled."""
        remote, self._remote = self._remote, None
        self._failed.clear()
        if remote is not None:
            with anyio.CancelScope(shield=True):
                await remote.close()

    async def ask(self, question: Question, context: ModelContext) -> ModelAnswer:
        """See :class:`~skillup.judges.models.question.AskModel`."""
        # What a model is asked is what the record will say: without secrets. So a replay, which
        # has nothing but the record, asks the same.
        texts = {"texts": question.texts} if isinstance(question, EmbeddingQuestion) else {
            "system": question.system, "prompt": question.prompt
        }  # fmt: skip
        clean = self._clean(texts)
        if "texts" in clean:
            clean["texts"] = tuple(clean["texts"])
        question = replace(question, **clean)
        asked = self._cached_question(question, context)
        answer = self._failed.get((context.trial, asked.key))
        # The same question is under way only once. If whoever asks it is cancelled, or fails, one
        # of those who wait takes over.
        while answer is None and (flight := self._under_way.get(asked.key)) is not None:
            await flight.landed.wait()
            answer = flight.answer
        if answer is not None:
            answer = replace(answer, cached=True)
        else:
            flight = self._under_way[asked.key] = _Flight()
            try:
                answer = flight.answer = await self._ask(question, context, asked)
            finally:
                del self._under_way[asked.key]
                flight.landed.set()
        if answer.error is not None and context.trial is not None:
            self._failed[context.trial, asked.key] = answer
        return answer

    async def _ask(
        self, question: Question, context: ModelContext, asked: CachedQuestion
    ) -> ModelAnswer:
        cache = self._options.cache
        stored = await anyio.to_thread.run_sync(cache.read, asked)
        if stored is not None and (known := _as_answer(stored, question)) is not None:
            trial = context.asked_for() if context.resumed else None
            return replace(known, cached=not cache.take_over(asked, stored, trial))
        try:
            answer = await self._answer(question, context)
        except CannotAskError as problem:
            answer = ModelAnswer(None, str(problem), model=question.model.model)
        if answer.error is not None:
            return replace(answer, error=self._options.mask(answer.error))
        value = answer.value
        if isinstance(question, ModelQuestion):
            value = value.model_dump(mode="json", by_alias=True)
        kept = StoredAnswer(
            asked=asked.own,
            answer=self._clean(value),
            model=answer.model,
            usage=answer.usage,
            cost_usd=answer.cost_usd,
            asked_for=context.asked_for(),
        )
        await anyio.to_thread.run_sync(cache.write, asked, kept)
        masked = _as_answer(kept, question)
        return replace(answer, value=masked.value) if masked is not None else answer

    async def _answer(self, question: Question, context: ModelContext) -> ModelAnswer:
        model = question.model.model
        if isinstance(question, ModelQuestion) and is_scripted(model):
            file = context.suite_root / parse_model(model)[1]
            value = await anyio.to_thread.run_sync(self._scripted.ask, question, file)
            return ModelAnswer(value, model=model)
        embeddings = isinstance(question, EmbeddingQuestion)
        endpoint = endpoint_of(question.model, self._options.environment, embeddings=embeddings)
        if self._remote is None:
            from skillup.judges.models.remote import RemoteModels

            limiter = anyio.CapacityLimiter(self._options.at_once)
            self._remote = RemoteModels(limiter, self._options.rate_limiter)
        return await self._remote.ask(question, endpoint)

    def _cached_question(self, question: Question, context: ModelContext) -> CachedQuestion:
        """`question` as its answer is kept.

        A written-down judge is another one in each suite; scripts are edited while suites are
        written, and asking them costs nothing: no other run gets their answers.
        """
        asked = question.identity()
        if is_scripted(question.model.model):
            return CachedQuestion(self._clean(asked | {"suite_root": context.suite}))
        address = address_of(question.model, self._options.environment)
        shared = asked | {"base_url": _without_login(address)}
        return CachedQuestion(self._clean(asked), self._clean(shared))

    def _clean(self, data: Any) -> Any:
        return as_stored(data, self._options.mask)


class Asker:
    """:class:`~skillup.judges.models.question.AskModel` for the questions of one suite."""

    def __init__(self, models: Models, context: ModelContext) -> None:
        self._models = models
        self._context = context

    async def ask(self, question: Question) -> ModelAnswer:
        """The answer, from the cache or from the model."""
        return await self._models.ask(question, self._context)


def _as_answer(stored: StoredAnswer, question: Question) -> ModelAnswer | None:
    """None: what is stored is not of the form that is asked for."""
    try:
        if isinstance(question, EmbeddingQuestion):
            value: Any = question.read(stored.answer)
        else:
            value = question.form.model_validate(stored.answer)
    except (MalformedAnswerError, ValueError):
        return None
    return ModelAnswer(value, None, stored.usage, stored.cost_usd, stored.model, cached=True)


def _without_login(address: str | None) -> str | None:
    """An address of the environment may have a password in it, which stands in no file."""
    if address is None or "@" not in address:
        return address
    scheme, _, rest = address.partition("://")
    host, slash, path = rest.partition("/")
    return f"{scheme}://{host.rpartition('@')[2]}{slash}{path}"


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
