"""Asking models: masked, from the cache where possible, each question once at a time."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import anyio.to_thread

from skillup.judges.models.cache import AnswerCache, StoredAnswer, as_stored, key_of
from skillup.judges.models.endpoint import (
    CannotAskError,
    endpoint_of,
    environment_address,
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


@dataclass(slots=True)
class _Flight:
    """A question that is under way."""

    landed: anyio.Event = field(default_factory=anyio.Event)
    answer: ModelAnswer | None = None


@dataclass(slots=True)
class Models:
    """Every model, whoever provides it.

    Before it is used in another event loop it must be closed in the one before.
    """

    environment: Mapping[str, str]
    """The user's own; keys and addresses are taken from it."""
    mask: Callable[[str], str]
    """Hides secrets: from the models that are asked, too."""
    answers: AnswerCache = field(default_factory=lambda: AnswerCache(None, None))
    """Where answers are kept."""
    at_once: int = 8
    """Requests that may be under way at the same time."""
    rate_limiter: RateLimiter = field(default_factory=RateLimiter)
    """The ways to providers, shared with agents that judge or play the user."""
    _remote: RemoteModels | None = field(init=False, default=None)
    _scripted: ScriptedModels = field(init=False, default_factory=ScriptedModels)
    _under_way: dict[str, _Flight] = field(init=False, default_factory=dict)

    def seen_from(self, suite_root: Path, *, suite: str | None = None, **context: Any) -> Asker:
        """For the questions of one suite; see :class:`Asker`."""
        return Asker(self, suite_root, suite or str(suite_root), **context)

    def problem(
        self, model: JudgeModel, suite_root: Path, *, embeddings: bool = False
    ) -> str | None:
        """Why `model` could not be asked, found without asking it; None: nothing is known."""
        try:
            if is_scripted(model.model) and not embeddings:
                self._scripted.script(suite_root / parse_model(model.model)[1])
            else:
                endpoint_of(model, self.environment, embeddings=embeddings)
        except CannotAskError as problem:
            return self.mask(str(problem))
        return None

    async def close(self) -> None:
        """Closes every connection, also when cancelled."""
        remote, self._remote = self._remote, None
        if remote is not None:
            with anyio.CancelScope(shield=True):
                await remote.close()

    async def ask(self, question: Question, asker: Asker) -> ModelAnswer:
        """See :class:`~skillup.judges.models.question.AskModel`."""
        # What a model is asked is what the record will say: without secrets. So a replay, which
        # has nothing but the record, asks the same.
        if isinstance(question, EmbeddingQuestion):
            question = replace(question, texts=tuple(self._clean(list(question.texts))))
        else:
            system, prompt = self._clean([question.system, question.prompt])
            question = replace(question, system=system, prompt=prompt)
        asked = question.identity()
        if is_scripted(question.model.model):
            asked["suite_root"] = asker.suite  # a written-down judge is another one in each suite
        asked = self._clean(asked)
        # The same question is under way only once. If whoever asks it is cancelled, or fails, one
        # of those who wait takes over.
        key = key_of(asked)
        while (flight := self._under_way.get(key)) is not None:
            await flight.landed.wait()
            if flight.answer is not None:
                return replace(flight.answer, cached=True)
        flight = self._under_way[key] = _Flight()
        try:
            flight.answer = await self._ask(question, asker, asked)
        finally:
            del self._under_way[key]
            flight.landed.set()
        return flight.answer

    async def _ask(self, question: Question, asker: Asker, asked: dict[str, Any]) -> ModelAnswer:
        cache = self.answers
        # Written-down judges are edited while suites are written, and cost nothing; an address that
        # only the environment names is not in the question.
        elsewhere = environment_address(question.model, self.environment)
        share = elsewhere is None and not is_scripted(question.model.model)
        trial = key_of({"trial": asker.trial}) if asker.of_grade and asker.trial else None
        stored = await anyio.to_thread.run_sync(lambda: cache.read(asked, share=share))
        if stored is not None and (known := _as_answer(stored, question)) is not None:
            own = asker.resumed and cache.take_over(asked, stored, trial)
            return replace(known, cached=not own)
        try:
            answer = await self._answer(question, asker.suite_root)
        except CannotAskError as problem:
            answer = ModelAnswer(None, str(problem), model=question.model.model)
        if answer.error is not None:
            return replace(answer, error=self.mask(answer.error))
        value = answer.value
        if isinstance(question, ModelQuestion):
            value = value.model_dump(mode="json", by_alias=True)
        kept = StoredAnswer(
            asked=asked,
            answer=self._clean(value),
            model=answer.model,
            usage=answer.usage,
            cost_usd=answer.cost_usd,
            asked_for=trial,
        )
        await anyio.to_thread.run_sync(lambda: cache.write(kept, share=share))
        masked = _as_answer(kept, question)
        return replace(answer, value=masked.value) if masked is not None else answer

    async def _answer(self, question: Question, suite_root: Path) -> ModelAnswer:
        model = question.model.model
        if isinstance(question, ModelQuestion) and is_scripted(model):
            file = suite_root / parse_model(model)[1]
            value = await anyio.to_thread.run_sync(self._scripted.ask, question, file)
            return ModelAnswer(value, model=model)
        embeddings = isinstance(question, EmbeddingQuestion)
        endpoint = endpoint_of(question.model, self.environment, embeddings=embeddings)
        if self._remote is None:
            from skillup.judges.models.remote import RemoteModels

            limiter = anyio.CapacityLimiter(self.at_once)
            self._remote = RemoteModels(limiter, self.rate_limiter)
        return await self._remote.ask(question, endpoint)

    def _clean(self, data: Any) -> Any:
        return as_stored(data, self.mask)


@dataclass(frozen=True, slots=True)
class Asker:
    """:class:`~skillup.judges.models.question.AskModel` for the questions of one suite."""

    models: Models
    suite_root: Path
    """Files of written-down judges are looked for there."""
    suite: str
    """Tells suites apart, wherever they are now: the root as records have it."""
    trial: str | None = None
    of_grade: bool = False
    resumed: bool = False
    """These two are those of the :class:`~skillup.judges.usage.UsageTracker` it is counted in."""

    async def ask(self, question: Question) -> ModelAnswer:
        """The answer, from the cache or from the model."""
        return await self.models.ask(question, self)


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


# Which model reads for a case: the one asked for, else the case's own, else the fallback.


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
