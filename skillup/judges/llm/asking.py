"""Putting one question to the model, as often as the case asks for it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

import anyio
from pydantic import BaseModel

from skillup.errors import FullDiskError, RunDirectoryError
from skillup.judges.llm.prompt import SYSTEM
from skillup.judges.models.question import AskModel, EmbeddingAnswer, ModelAnswer, ModelQuestion
from skillup.judges.usage import UsageTracker
from skillup.schema.judge import JudgeModel

A = TypeVar("A", bound=BaseModel)
NO_MODEL = (
    "no model is named to read: write `judge: {model: …}` in eval.yaml, "
    "or `judge_model` in the case, or give --judge-model"
)


@dataclass(frozen=True, slots=True)
class Sample(Generic[A]):
    """One answer, or why there is none."""

    value: A | None
    error: str = ""


@dataclass(frozen=True, slots=True)
class Asking:
    """Whom to ask, and where to write down what it took."""

    asker: AskModel
    ledger: UsageTracker
    model: JudgeModel | None

    async def ask(self, prompt: str, form: type[A], ids: Sequence[str] = ()) -> list[Sample[A]]:
        """The model's answers, `repeat` of them, asked for at the same time.

        `ids`: what the answer, a list, has to speak of.
        """
        model = self.model
        if model is None:
            return [Sample(None, NO_MODEL)]
        samples: list[Sample[A]] = [Sample(None)] * model.repeat

        async def one(number: int) -> None:
            question = ModelQuestion(model, SYSTEM, prompt, form, number, tuple(ids))
            samples[number] = self._sample(await self._answer(question), form)

        async with anyio.create_task_group() as group:
            for number in range(model.repeat):
                group.start_soon(one, number)
        return samples

    async def embed(self, name: str, texts: Sequence[str]) -> EmbeddingAnswer:
        """The texts' vectors by the embedding model `name`."""
        like = self.model or JudgeModel(model=name)
        try:
            answer = await self.asker.embed(name, texts, like)
        except (RunDirectoryError, FullDiskError):
            raise  # the run cannot keep the answer, so it ends
        except Exception as defect:  # noqa: BLE001 - a judge's failure is data, see `_answer`
            answer = EmbeddingAnswer(None, _defect(defect), model=name)
        self._account(answer)
        return answer

    async def _answer(self, question: ModelQuestion) -> ModelAnswer:
        try:
            answer = await self.asker.ask(question)
        except (RunDirectoryError, FullDiskError):
            raise  # the run cannot keep the answer, so it ends
        except Exception as defect:  # noqa: BLE001 - our own defect must not become a verdict
            answer = ModelAnswer(None, _defect(defect), model=question.model.model)
        self._account(answer)
        return answer

    def _account(self, answer: ModelAnswer | EmbeddingAnswer) -> None:
        self.ledger.add(answer.model, answer.usage, answer.cost_usd, cached=answer.cached)

    @staticmethod
    def _sample(answer: ModelAnswer, form: type[A]) -> Sample[A]:
        if answer.error is not None:
            return Sample(None, " ".join(answer.error.split()))
        if not isinstance(answer.value, form):
            return Sample(None, "the model's answer does not have the form that was asked for")
        return Sample(answer.value)


def _defect(defect: Exception) -> str:
    said = " ".join(str(defect).split())
    return f"skillup itself failed: {type(defect).__name__}: {said}; please report it"
