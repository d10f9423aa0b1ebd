"""One check read by a model: what is asked, how often, and what came of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

import anyio
from pydantic import BaseModel

from skillup.checks.describe import expected, key_and_spec, title
from skillup.errors import FullDiskError, RunDirectoryError
from skillup.judges.answers import Quotations, in_order_of_weight
from skillup.judges.llm.prompt import (
    SYSTEM,
    JudgePrompt,
    assembled,
)
from skillup.judges.llm.subject import (
    Exchange,
    JudgedText,
)
from skillup.judges.material import Material
from skillup.judges.models.question import (
    AskModel,
    ModelAnswer,
    ModelQuestion,
    Question,
)
from skillup.judges.usage import UsageTracker
from skillup.schema.checks import Check
from skillup.schema.grade import CheckResult, CheckRole

A = TypeVar("A", bound=BaseModel)
NO_MODEL = (
    "no model is named to read: write `judge: {model: …}` in eval.yaml, "
    "or `judge_model` in the case, or give --judge-model"
)
REASON = "One sentence: what in the material decides it."
QUOTE = "The deciding passage, copied exactly from the material; may be empty."


@dataclass(frozen=True, slots=True)
class Sample(Generic[A]):
    """One answer, or why there is none."""

    value: A | None
    error: str = ""


@dataclass(frozen=True, slots=True)
class Reading:
    """What is judged, whom to ask, and where to write down what it took."""

    text: JudgedText
    role: CheckRole
    asker: AskModel
    usage: UsageTracker

    async def ask(
        self,
        question: JudgePrompt,
        shown: Material,
        judged: Sequence[Exchange],
        form: type[A],
        *,
        own: str | None = None,
        ids: Sequence[str] = (),
        criteria: Sequence[str] = (),
    ) -> list[Sample[A]]:
        """The model's answers, `repeat` of them, asked for at the same time."""
        model = self.text.case.judge_model
        if model is None:
            return [Sample(None, NO_MODEL)]
        prompt = assembled(question, shown, judged, own)
        answers = [part for part in shown.parts if part.kind == "answer"]
        latest = answers[-1].text.strip("\n") if answers else ""
        whole = [part.text.strip("\n") for part in answers if part.label.startswith("turn ")]
        in_question = latest if self.text.is_turn else "\n\n".join(whole)
        samples: list[Sample[A]] = [Sample(None)] * model.repeat

        async def one(number: int) -> None:
            answer = await self.answer(
                ModelQuestion(
                    model, SYSTEM, prompt, form, number, tuple(ids), tuple(criteria), latest,
                    in_question,
                )
            )  # fmt: skip
            if answer.error is not None:
                samples[number] = Sample(None, " ".join(answer.error.split()))
            else:
                samples[number] = Sample(answer.value)

        async with anyio.create_task_group() as group:
            for number in range(model.repeat):
                group.start_soon(one, number)
        return samples

    async def answer(self, question: Question) -> ModelAnswer:
        """The answer to one question, counted."""
        try:
            answer = await self.asker.ask(question)
        except (RunDirectoryError, FullDiskError):
            raise  # the run cannot keep the answer, so it ends
        except Exception as defect:  # noqa: BLE001 - our own defect must not become a verdict
            answer = ModelAnswer(None, defect_message(defect), model=question.model.model)
        self.usage.add(answer.model, answer.usage, answer.cost_usd, cached=answer.cached)
        return answer

    def blank(self, check: Check) -> CheckResult:
        """The result of `check`, before anything is known."""
        key, spec = key_and_spec(check)
        wanted = expected(key, spec)
        return CheckResult(
            name=check.name or title(key, wanted, check),
            kind=key,
            passed=False,
            score=0.0,
            weight=check.weight,
            required=check.required,
            scope=self.text.scope,
            role=self.role,
            expected=wanted,
        )


def defect_message(defect: Exception) -> str:
    """A defect of ours, which must not become a verdict."""
    while isinstance(defect, ExceptionGroup):  # of a task group: what is in it says more
        defect = defect.exceptions[0]
    words = " ".join(str(defect).split())
    return f"skillup itself failed: {type(defect).__name__}: {words}; please report it"


def quotations_of(shown: Material) -> Quotations:
    return Quotations(in_order_of_weight(shown.parts))


def quotes(quote: str) -> tuple[str, ...]:
    return (quote,) if quote.strip() else ()
