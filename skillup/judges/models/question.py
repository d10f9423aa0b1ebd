"""What a model is asked, and what came of it: the seam between judges and the models they ask."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, get_args

from pydantic import BaseModel

from skillup.judges.models.cache import CachedQuestion, form_of
from skillup.judges.models.endpoint import CannotAskError, address_of, embedding_model
from skillup.schema.judge import JudgeModel
from skillup.schema.record import Usage

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelResponse
    from pydantic_ai.usage import RequestUsage


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


# A question as its answer is kept: all that must be the same for the answer to be.

Clean = Callable[[Any], Any]
"""Data as it will be read back from a file."""


def is_scripted(model: str) -> bool:
    """Whether it is a written-down judge."""
    return model.strip().startswith("scripted:")


def asked_of(
    question: ModelQuestion, suite: str, environment: Mapping[str, str], clean: Clean
) -> CachedQuestion:
    """`question` as its answer is kept.

    A written-down judge is another one in each suite. Which suite it is, its root tells as the
    record has it: neither the run nor the script need be there any more, or where they were.
    """
    model = question.model
    asked: dict[str, Any] = {
        "model": model.model,
        "base_url": model.base_url,
        "system": question.system,
        "prompt": question.prompt,
        "answer": form_of(question.answer),
        "sample": question.sample,
    }
    if is_scripted(model.model):
        # Scripts are edited while suites are written, and asking them costs nothing.
        return CachedQuestion(clean(asked | {"suite_root": suite}), None)
    return _shared(asked, model, environment, clean)


def embeddings_asked_of(
    model: str,
    texts: Sequence[str],
    like: JudgeModel,
    environment: Mapping[str, str],
    clean: Clean,
) -> CachedQuestion:
    """The same of the vectors of `texts`."""
    asked = {"embeddings_by": model, "base_url": like.base_url, "texts": list(texts)}
    try:
        return _shared(asked, embedding_model(model, like), environment, clean)
    except CannotAskError:  # nobody will be asked
        return CachedQuestion(clean(asked), None)


def _shared(
    asked: dict[str, Any], model: JudgeModel, environment: Mapping[str, str], clean: Clean
) -> CachedQuestion:
    try:
        address = address_of(model, environment)
    except CannotAskError:  # nobody will be asked
        return CachedQuestion(clean(asked), None)
    return CachedQuestion(clean(asked), clean(asked | {"base_url": _without_login(address)}))


def _without_login(address: str | None) -> str | None:
    """An address of the environment may have a password in it, which stands in no file."""
    if address is None or "@" not in address:
        return address
    scheme, _, rest = address.partition("://")
    host, slash, path = rest.partition("/")
    return f"{scheme}://{host.rpartition('@')[2]}{slash}{path}"


# Tokens and cost of the answers to one question, as the provider told them.


class Account:
    """Adds up. What a provider does not tell, or has no known price, is None in the sum."""

    def __init__(self) -> None:
        self.model: str | None = None
        self._usages: list[Usage | None] = []
        self._costs: list[float | None] = []

    def add(self, response: ModelResponse) -> None:
        """One answer of the model, whether it was of the right form or not."""
        self.model = response.model_name or self.model
        self._usages.append(usage_of(response.usage))
        self._costs.append(_price_of(response))

    def usage(self) -> Usage | None:
        """Over all answers; None: there were none, or one did not tell."""
        told = [usage for usage in self._usages if usage is not None]
        if not told or len(told) < len(self._usages):
            return None
        return Usage(**{name: _sum(told, name) for name in Usage.model_fields})

    def cost_usd(self) -> float | None:
        """Over all answers; None: of one it is not known."""
        known = [cost for cost in self._costs if cost is not None]
        return sum(known) if known and len(known) == len(self._costs) else None


def usage_of(usage: RequestUsage) -> Usage | None:
    """In our words; None where the provider told nothing."""
    if not usage.input_tokens and not usage.output_tokens:
        return None
    return Usage(
        input_tokens=usage.input_tokens,
        cached_input_tokens=usage.cache_read_tokens,
        cache_write_tokens=usage.cache_write_tokens,
        output_tokens=usage.output_tokens,
        reasoning_tokens=usage.details.get("reasoning_tokens"),
        requests=1,
    )


def _price_of(response: ModelResponse) -> float | None:
    if not response.model_name or usage_of(response.usage) is None:
        return None
    try:
        return float(response.cost().total_price)
    except (LookupError, ValueError):
        return None  # a model or an address that has no known price


def _sum(usages: list[Usage], name: str) -> int | None:
    values = [getattr(usage, name) for usage in usages]
    return None if None in values else sum(values)
