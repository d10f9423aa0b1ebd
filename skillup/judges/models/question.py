"""What a model is asked, and what came of it: the seam between judges and the models they ask."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, get_args

from pydantic import BaseModel

from skillup.schema.judge import JudgeModel
from skillup.schema.record import Usage


@dataclass(frozen=True, slots=True)
class ModelQuestion:
    """One question; two that are equal have the same answer, and are asked once."""

    model: JudgeModel
    system: str
    """What the model is told of its task."""
    prompt: str
    """The question itself, with what is judged in it."""
    answer: type[BaseModel]
    """The form of the answer."""
    sample: int = 0
    """Which repetition it is, from 0 (``repeat`` asks the same several times)."""
    ids: tuple[str, ...] = ()
    """The answer is a list that speaks of each of these once, and of nothing else."""

    def schema(self) -> dict[str, Any]:
        """The form as JSON Schema, with all that is known of this question's answer."""
        schema = self.answer.model_json_schema()
        if self.ids:
            name, key = _list_and_key(self.answer)
            given = schema["properties"][name]
            given |= {"minItems": len(self.ids), "maxItems": len(self.ids)}
            element = schema["$defs"][given["items"]["$ref"].rpartition("/")[2]]
            element["properties"][key]["enum"] = list(self.ids)
        return schema

    def lacks(self, value: BaseModel) -> str | None:
        """Why `value`, which has the form, is none of this question's answers."""
        if not self.ids:
            return None
        name, key = _list_and_key(self.answer)
        given = [str(getattr(one, key)).strip().casefold() for one in getattr(value, name)]
        if sorted(given) == sorted(one.casefold() for one in self.ids):
            return None
        return f"`{name}` must have each `{key}` of {', '.join(self.ids)} once, and no other"


def _list_and_key(form: type[BaseModel]) -> tuple[str, str]:
    """Of a form that is one list of objects: its name, and the first key of its elements."""
    ((name, field),) = form.model_fields.items()
    (element,) = get_args(field.annotation)
    return name, next(iter(element.model_fields))


@dataclass(frozen=True, slots=True)
class ModelAnswer:
    """What a model answered, or why it did not; never both."""

    value: BaseModel | None
    """An object of the question's `answer`; None: see `error`."""
    error: str | None = None
    """What happened and what to do, in one or two lines; secrets masked."""
    usage: Usage | None = None
    """Tokens of this answer, those of answers that were malformed included."""
    cost_usd: float | None = None
    """None: not known."""
    model: str | None = None
    """As the provider names it; as it was asked, where the provider does not say."""
    cached: bool = False
    """Known from earlier: nothing was sent. Usage and cost are then those of that time."""


@dataclass(frozen=True, slots=True)
class EmbeddingAnswer:
    """The vectors of some texts, or why there are none; never both."""

    vectors: Sequence[Sequence[float]] | None
    """One for each text, in order; None: see `error`."""
    error: str | None = None
    usage: Usage | None = None
    cost_usd: float | None = None
    model: str | None = None
    cached: bool = False


class AskModel(Protocol):
    """Asks models. Never raises but for cancellation: what went wrong is in the answer."""

    async def ask(self, question: ModelQuestion) -> ModelAnswer:
        """The answer, from the cache or from the model."""

    async def embed(self, model: str, texts: Sequence[str], like: JudgeModel) -> EmbeddingAnswer:
        """The vectors of `texts` by the embedding model `model` (`PROVIDER:NAME`).

        The address and the key are those of `like`, if it is a model of the same provider.
        """
