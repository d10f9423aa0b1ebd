"""The models that read for checks: one or a panel, and how they are asked."""

from typing import Annotated, Any, Literal

from pydantic import Field, WithJsonSchema

from skillup.schema.base import Bool, Model, NonEmptyText, PositiveInt, Seconds, Short
from skillup.schema.profile import VariableOfKey

ModelOrPanel = Annotated[
    NonEmptyText,
    WithJsonSchema(
        {"type": ["string", "array"], "items": {"type": "string"}, "minItems": 1, "minLength": 1}
    ),
]
Combine = Literal["majority", "unanimous", "mean", "median"]


def with_panel(value: Any) -> Any:
    """``model: [a, b]`` as fields: the first, and all of them."""
    named = value.get("model") if isinstance(value, dict) else None
    if not isinstance(named, list) or not named:
        return value
    if any(name in named[:place] for place, name in enumerate(named)):
        raise ValueError("a model is named twice || name each once; `repeat` asks it several times")
    return {**value, "model": named[0], **({"panel": named} if len(named) > 1 else {})}


class AskedModels(Model):
    """How models are asked."""

    panel: list[NonEmptyText] = []  #: All models of `model: […]`; written there.
    combine: Combine | None = None  #: Of votes; default: majority, of scores the mean.
    base_url: NonEmptyText | None = None  #: The model's address.
    api_key_env: VariableOfKey | None = None  #: The key's variable; default: the provider's.
    repeat: PositiveInt = 1  #: How often each question is asked.
    temperature: Annotated[float, Field(ge=0, le=2)] | None = None  #: Default: 0; with `repeat` 1.
    examples: NonEmptyText | None = None  #: Labelled answers to learn from: a CSV of `label`.


class JudgeModel(Short, AskedModels):
    """The model that reads for checks, or several, and how they are asked."""

    chief = "model"

    model: ModelOrPanel  #: `anthropic:…`, `openai:…` or `scripted:FILE`; a list: a panel.
    timeout_seconds: Seconds | None = None  #: For each request.
    everywhere: Bool = False  #: In place of those that checks name, too.

    @classmethod
    def widened(cls, value: Any) -> Any:
        return with_panel(super().widened(value))

    def members(self) -> "list[JudgeModel]":
        """Each model by itself, in order."""
        names = self.panel or [self.model]
        return [self.model_copy(update={"model": name, "panel": []}) for name in names]

    def fits(self, *, scored: bool) -> None:
        """Raises ValueError: votes on scores, or else verdicts, are not combined so."""
        if self.combine in (("majority", "unanimous") if scored else ("mean", "median")):
            right = "`mean` or `median`" if scored else "`majority` or `unanimous`"
            what = "is about verdicts, and this has a score" if scored else "is about scores"
            raise ValueError(f"`combine: {self.combine}` {what} || write {right}")

    @property
    def sampled_at(self) -> float:
        """The temperature."""
        return float(self.repeat > 1) if self.temperature is None else self.temperature
