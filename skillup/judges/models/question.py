"""What is asked, and what came of it: the seam between judges and the models they ask."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, TypeVar, get_args

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, ValidationError

from skillup.judges.answers import DoubtfulJsonError, only_object
from skillup.schema.judge import JudgeModel
from skillup.schema.record import Usage

# The form of an answer, which is taken strictly or not at all.


class AnswerForm(BaseModel):
    """The form of an answer: these keys and no others."""

    model_config = ConfigDict(extra="forbid")


def _number(value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError("must be a number")  # noqa: TRY004  pydantic reports no other
    return value


def _not_blank(text: str) -> str:
    if not text.strip():
        raise ValueError("must not be empty")
    return text


Number = BeforeValidator(_number)
"""Neither a text nor a boolean; some models write 4.0 for 4, or 1 for 1.0, which is fine."""
Reason = Annotated[str, AfterValidator(_not_blank)]  # Why: a text that says something
Form = TypeVar("Form", bound=BaseModel)


class MalformedAnswerError(Exception):
    """An answer has not the form that was asked for; the message says what is wrong."""


def read_answer(answer: str | dict[str, Any], form: type[Form], ids: Sequence[str] = ()) -> Form:
    """The answer, which speaks of each of `ids` once. Raises MalformedAnswerError."""
    try:
        value = form.model_validate(answer if isinstance(answer, dict) else only_object(answer))
    except DoubtfulJsonError as doubt:
        raise MalformedAnswerError(str(doubt)) from None
    except ValidationError as error:
        raise MalformedAnswerError(what_is_wrong(error)) from None
    if ids:
        name, key = _list_and_key(form)
        given = [str(getattr(one, key)).strip().casefold() for one in getattr(value, name)]
        if sorted(given) != sorted(one.casefold() for one in ids):
            raise MalformedAnswerError(
                f"`{name}` must have each `{key}` of {', '.join(ids)} once, and no other"
            )
    return value


def what_is_wrong(error: ValidationError) -> str:
    return "; ".join(
        f"{'.'.join(map(str, one['loc']))}: {one['msg']}".removeprefix(": ")
        for one in error.errors(include_url=False)[:5]
    )


def schema_of(form: type[BaseModel], ids: Sequence[str] = ()) -> dict[str, Any]:
    """The form as JSON Schema, its elements being just those with these `ids`."""
    schema = form.model_json_schema()
    if ids:
        name, key = _list_and_key(form)
        given = schema["properties"][name]
        given |= {"minItems": len(ids), "maxItems": len(ids)}
        element = schema["$defs"][given["items"]["$ref"].rpartition("/")[2]]
        element["properties"][key]["enum"] = list(ids)
    return schema


def _list_and_key(form: type[BaseModel]) -> tuple[str, str]:
    """Of a form that is one list of objects: its name, and the first key of its elements."""
    ((name, field),) = form.model_fields.items()
    (element,) = get_args(field.annotation)
    return name, next(iter(element.model_fields))


@dataclass(frozen=True, slots=True)
class ModelQuestion:
    """One question; two that are equal have the same answer, and are asked once."""

    model: JudgeModel
    system: str  # What the model is told of its task
    prompt: str  # The question itself, with what is judged in it
    form: type[BaseModel]  # The form of the answer
    sample: int = 0  # Which repetition it is, from 0 (``repeat`` asks the same several times)
    ids: tuple[str, ...] = ()  # The answer is a list that speaks of each of these once
    criteria: tuple[str, ...] = ()  # Their texts: for written-down judges, like the next two
    latest: str = ""  # The agent's latest answer in the prompt
    judged: str = ""  # All answers that are judged

    def read(self, answer: str | dict[str, Any]) -> BaseModel:
        return read_answer(answer, self.form, self.ids)

    def identity(self) -> dict[str, Any]:
        return {
            "model": self.model.model,
            "base_url": self.model.base_url,
            "system": self.system,
            "prompt": self.prompt,
            "answer": self.form.model_json_schema(),
            "sample": self.sample,
        }


@dataclass(frozen=True, slots=True)
class ModelAnswer:
    """What a model answered, or why it did not; never both."""

    value: Any  # An object of the question's `form`; None: see `error`
    error: str | None = None  # What happened and what to do, in one or two lines; secrets masked
    usage: Usage | None = None  # Of malformed answers, too
    cost_usd: float | None = None  # None: not known
    model: str | None = None  # As the provider names it, else as it was asked
    cached: bool = False  # Nothing was sent; usage and cost are those of that time


AskModel = Callable[[ModelQuestion], Coroutine[Any, Any, ModelAnswer]]
"""Asks models. What went wrong is in the answer, but for a run that cannot keep it."""
