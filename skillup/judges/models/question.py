"""What a model is asked, and what came of it: the seam between judges and the models they ask."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

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
