"""Asking models: masked, from the cache where possible, each question once at a time."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import anyio.to_thread
from pydantic import BaseModel

from skillup.judges.models import scripted
from skillup.judges.models.cache import AnswerCache, StoredAnswer, as_stored
from skillup.judges.models.endpoint import (
    CannotAskError,
    endpoint_of,
    environment_address,
    is_scripted,
    parse_model,
)
from skillup.judges.models.question import (
    AskModel,
    MalformedAnswerError,
    ModelAnswer,
    ModelQuestion,
)
from skillup.load.model import judge_settings
from skillup.ratelimit import RateLimiter
from skillup.schema.case import Case
from skillup.schema.judge import JudgeModel
from skillup.schema.suite import Suite

if TYPE_CHECKING:
    from skillup.judges.models.remote import RemoteModels


_AT_ONCE = 8  # Requests that may be under way


class _NoAnswerError(Exception):
    """There is none to keep; `answer` says why."""

    def __init__(self, answer: ModelAnswer) -> None:
        super().__init__(answer.error)
        self.answer = answer


@dataclass(slots=True)
class Models:
    """Every model, whoever provides it. To be closed before it is used in another event loop."""

    environment: Mapping[str, str]  # The user's own; keys and addresses are taken from it
    mask: Callable[[str], str]  # Hides secrets: from the models that are asked, too
    answers: AnswerCache = field(default_factory=AnswerCache)  # Where answers are kept
    rate_limiter: RateLimiter = field(default_factory=RateLimiter)  # Shared with agents
    _remote: RemoteModels | None = field(init=False, default=None)

    def asker(self, suite_root: Path) -> AskModel:
        """For the questions of one suite: its written-down judges are looked for there."""
        return partial(self._ask, suite_root)

    def problem(self, model: JudgeModel, suite_root: Path) -> str | None:
        """Why `model` could not be asked, found without asking it; None: nothing is known."""
        try:
            if is_scripted(model.model):
                scripted.script_of(suite_root / parse_model(model.model)[1])
            else:
                endpoint_of(model, self.environment)
        except CannotAskError as problem:
            return self.mask(str(problem))
        return None

    async def close(self) -> None:
        remote, self._remote = self._remote, None
        if remote is not None:
            with anyio.CancelScope(shield=True):
                await remote.close()

    async def _ask(self, suite_root: Path, question: ModelQuestion) -> ModelAnswer:
        # What a model is asked is what the record will say: without secrets. So a replay, which
        # has nothing but the record, asks the same.
        system, prompt = self._clean([question.system, question.prompt])
        question = replace(question, system=system, prompt=prompt)
        model, identity = question.model, question.identity()
        if is_scripted(model.model):  # a written-down judge is another one in each suite
            identity["suite_root"] = str(suite_root)
        asked = self._clean(identity)
        # Written-down judges are edited while suites are written, and cost nothing; an address that
        # only the environment names is not in the question.
        elsewhere = environment_address(model, self.environment)
        share = elsewhere is None and not is_scripted(model.model)

        def read(stored: StoredAnswer) -> BaseModel | None:
            try:
                return question.read(stored.answer)
            except MalformedAnswerError:
                return None

        async def ask() -> StoredAnswer:
            try:
                answer = await self._answer(question, suite_root)
            except CannotAskError as problem:
                answer = ModelAnswer(None, str(problem), model=model.model)
            if answer.error is not None:
                raise _NoAnswerError(replace(answer, error=self.mask(answer.error)))
            value = self._clean(answer.value.model_dump(mode="json", by_alias=True))
            return StoredAnswer(
                asked=asked, answer=value, model=answer.model, usage=answer.usage,
                cost_usd=answer.cost_usd,
            )  # fmt: skip

        try:
            value, kept, cached = await self.answers.answer(asked, read, ask, share=share)
        except _NoAnswerError as failed:
            answer = failed.answer
            failed.answer = replace(answer, cached=True)  # who waited for the same pays nothing
            return answer
        return ModelAnswer(value, None, kept.usage, kept.cost_usd, kept.model, cached)

    async def _answer(self, question: ModelQuestion, suite_root: Path) -> ModelAnswer:
        model = question.model.model
        if is_scripted(model):
            file = suite_root / parse_model(model)[1]
            value = await anyio.to_thread.run_sync(scripted.answer_to, question, file)
            return ModelAnswer(value, model=model)
        endpoint = endpoint_of(question.model, self.environment)
        if self._remote is None:
            from skillup.judges.models.remote import RemoteModels

            limiter = anyio.CapacityLimiter(_AT_ONCE)
            self._remote = RemoteModels(limiter, self.rate_limiter)
        return await self._remote.ask(question, endpoint)

    def _clean(self, data: Any) -> Any:
        return as_stored(data, self.mask)


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
