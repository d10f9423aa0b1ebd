"""A written-down judge, for `model: scripted:FILE`: it answers offline, and needs no key.

It is for examples and for tests of suites. It answers all that is asked of models: checks that
read, and the messages of a simulated user.
"""

from typing import Any, ClassVar, Self

from pydantic import Field, model_validator

from skillup.schema.base import Model, NonEmptyText, PositiveInt, Short, one_of, optional
from skillup.schema.check_specs import Regexes


class JudgeWhen(Short):
    """Which questions a rule answers. A text alone is a regex for the `prompt`."""

    chief: ClassVar[str] = "prompt"

    system: Regexes = Field([], description="The same, for what the model is told of its task.")
    prompt: Regexes = Field([], description="Regexes that all match the question; case is ignored.")
    answer: Regexes = Field([], description="Regexes that all match the latest answer.")
    repetition: PositiveInt | None = optional("Only the n-th time of the same question.")


class JudgeRule(Model):
    """Which questions, and what is answered. The first rule that applies is taken."""

    when: JudgeWhen = Field(JudgeWhen(), description="Default: every question.")
    answer: dict[str, Any] | None = optional("The answer; one of another form does not apply.")
    error: NonEmptyText | None = optional("In place of an answer: fail with this message.")

    @model_validator(mode="after")
    def _one(self) -> Self:
        one_of(self, ("answer", "error"), what="a rule")
        return self


class JudgeCriterion(Model):
    """How criteria are decided, each by itself: by regexes on the answer that is judged."""

    when: Regexes = Field([], description="Regexes that all match the criterion.")
    found: Regexes = Field([], description="Met only if each of them matches the answer.")
    not_found: Regexes = Field([], description="Met only if none of them finds anything there.")

    @model_validator(mode="after")
    def _one(self) -> Self:
        if not self.found and not self.not_found:
            raise ValueError("it says nothing of the answer || add `found` or `not_found`")
        return self


class JudgeScript(Model):
    """The whole file."""

    rules: list[JudgeRule] = Field([], min_length=1, description="The first that applies wins.")
    criteria: list[JudgeCriterion] = Field(
        [], min_length=1, description="For criteria that no rule answers; the first applies."
    )

    @model_validator(mode="after")
    def _any(self) -> Self:
        if not self.rules and not self.criteria:
            raise ValueError("it answers nothing || add `rules` or `criteria`")
        return self
