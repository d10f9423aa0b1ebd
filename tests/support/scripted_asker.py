"""A model that answers what it was told to, in memory, and remembers what it was asked.

asker = ScriptedAsker(verdicts(c1="pass", c2="fail"))
results = read(asker, checks("Is polite"), make_record("Hello."), turn=1)
assert asker.questions[0].prompt == …
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import anyio
import anyio.lowlevel
from pydantic import BaseModel

from skillup.judges.evaluate import JudgeRequest, UsageTracker
from skillup.judges.llm import read_checks
from skillup.judges.question import MalformedAnswerError, ModelAnswer, ModelQuestion
from skillup.schema.case import Case
from skillup.schema.checks import Check
from skillup.schema.grade import CheckResult, CheckRole
from skillup.schema.record import Usage
from tests.support.records import Recorded

Says = dict[str, Any] | str
"""The answer's fields; or a text: the error."""
Script = Says | Sequence[Says] | Callable[[ModelQuestion], Says]
"""The same each time; by sample; or whatever fits the question."""


@dataclass
class ScriptedAsker:
    """An `AskModel` without a model."""

    script: Script = ""
    questions: list[ModelQuestion] = field(default_factory=list)

    async def __call__(self, question: ModelQuestion) -> ModelAnswer:
        await anyio.lowlevel.checkpoint()
        self.questions.append(question)
        said = self._said(question)
        model = question.model.model
        if isinstance(said, str):
            return ModelAnswer(None, said, model=model)
        try:
            value: BaseModel = question.read(said)
        except MalformedAnswerError as malformed:
            return ModelAnswer(None, f"malformed: {malformed}", model=model)
        sampling = {"temperature": question.temperature}
        usage = Usage(input_tokens=10)
        return ModelAnswer(value, usage=usage, cost_usd=0.5, model=model, sampling=sampling)

    @property
    def prompt(self) -> str:
        """Of the only question (its samples have the same)."""
        (prompt,) = {question.prompt for question in self.questions}
        return prompt

    def _said(self, question: ModelQuestion) -> Says:
        if callable(self.script):
            return self.script(question)
        if isinstance(self.script, dict | str):
            return self.script
        return self.script[question.sample]


def verdicts(**by_id: str | tuple[str, str]) -> dict[str, Any]:
    """A rubric's answer: for each id `pass` or `fail`, or that and a quotation."""
    rows = {key: (v, "") if isinstance(v, str) else v for key, v in by_id.items()}
    return {
        "verdicts": [
            {"id": key, "reason": f"{key} it is", "quote": quote, "verdict": verdict}
            for key, (verdict, quote) in rows.items()
        ]
    }


def checks(*written: Any) -> list[Check]:
    return [Check.model_validate(item) for item in written]


def read(
    asker: ScriptedAsker,
    asked: Sequence[Check],
    recorded: Recorded,
    *,
    turn: int | None = None,
    usage: UsageTracker | None = None,
    role: CheckRole = "assertion",
    **case: Any,
) -> list[CheckResult]:
    """What comes of asking `asked` of a turn, or of the conversation; `case` are its keys."""
    context = recorded.context(turn)
    written = {"id": "case", "input": {"prompt": "x"}, "judge_model": "test:judge", **case}
    request = JudgeRequest(context, role, Case.model_validate(written), list(asked))

    async def run() -> list[CheckResult]:
        return await read_checks(request, asker, usage or UsageTracker())

    return anyio.run(run)
