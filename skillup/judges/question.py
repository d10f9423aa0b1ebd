"""What is asked of models, whom, and what came of it; answers are taken strictly or not at all."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import field
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar, get_args

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, ValidationError

from skillup.dataclass import frozen
from skillup.load.discover import address_problem
from skillup.load.yaml_reader import no_constant, unique_keys
from skillup.schema.judge_model import JudgeModel
from skillup.schema.record import Usage

_BYTE_ORDER_MARK = "\N{ZERO WIDTH NO-BREAK SPACE}"
_FENCED = re.compile(r"```(?:json)?[ \t]*\n(.*)```", re.S | re.I)

# What models and agents are told: the texts of `prompts.md`, by their headings.
_PAGE = Path(__file__).with_name("prompts.md").read_text("utf-8")
_PARTS = re.split(r"^## (.+)\n", _PAGE, flags=re.MULTILINE)
PROMPTS = {name: text.strip("\n") for name, text in zip(_PARTS[1::2], _PARTS[2::2], strict=True)}


class MalformedAnswerError(Exception):
    """An answer has not the form that was asked for; the message says what is wrong."""


def bare(text: str) -> str:
    """Without spaces and a byte order mark around it."""
    return text.strip().lstrip(_BYTE_ORDER_MARK).strip()


def strict_json(text: str) -> Any:
    """The value that is all of `text`. Raises MalformedAnswerError, for double keys and NaN too."""
    try:
        return json.loads(bare(text), object_pairs_hook=unique_keys, parse_constant=no_constant)
    except RecursionError:
        raise MalformedAnswerError("it is nested too deeply") from None
    except ValueError as error:
        raise MalformedAnswerError(f"it is not JSON: {error}") from None


def _only_object(message: str) -> Any:
    """The object that is all of a message, fenced or not. Raises MalformedAnswerError.

    An object beside other text, or another object, may be a quotation of what somebody else wrote.
    """
    text = bare(message)
    if (fenced := _FENCED.fullmatch(text)) is not None:
        text = fenced[1].strip()
    if not text.startswith("{"):
        raise MalformedAnswerError("the answer is not one JSON object and nothing else")
    try:
        return strict_json(text)
    except MalformedAnswerError as doubt:
        raise MalformedAnswerError(f"the answer is not one JSON object: {doubt}") from None


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


def read_answer(answer: str | dict[str, Any], form: type[Form], ids: Sequence[str] = ()) -> Form:
    """The answer, which speaks of each of `ids` once. Raises MalformedAnswerError."""
    try:
        value = form.model_validate(answer if isinstance(answer, dict) else _only_object(answer))
    except ValidationError as error:
        raise MalformedAnswerError(what_is_wrong(error)) from None
    if ids:
        name, key = _list_and_key(form)
        given = [str(getattr(one, key)).strip().casefold() for one in getattr(value, name)]
        if sorted(given) != sorted(one.casefold() for one in ids):
            what = f"`{name}` must have each `{key}` of {', '.join(ids)} once, and no other"
            raise MalformedAnswerError(what)
    return value


def what_is_wrong(error: ValidationError) -> str:
    return "; ".join(
        f"{'.'.join(map(str, one['loc']))}: {one['msg']}".removeprefix(": ")
        for one in error.errors(include_url=False)[:5]
    ).replace("Value error, ", "")


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


@frozen
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
    shared: tuple[str, ...] = ()  # What the prompt begins with, as others do: for their caches
    temperature: float = 0.0  # Above 0 its samples differ
    seed: int = 0  # The run's: with another one, they differ from those of other runs

    def read(self, answer: str | dict[str, Any]) -> BaseModel:
        return read_answer(answer, self.form, self.ids)


@frozen
class ModelAnswer:
    """What a model answered, or why it did not; never both."""

    value: Any  # An object of the question's `form`; None: see `error`
    error: str | None = None  # What happened and what to do, in one or two lines; secrets masked
    usage: Usage | None = None  # Of malformed answers, too
    cost_usd: float | None = None  # None: not known
    model: str | None = None  # As the provider names it, else as it was asked
    cached: bool = False  # Nothing was sent; usage and cost are those of that time
    sampling: Mapping[str, float] = field(default_factory=dict)  # What the provider took of that
    key: str | None = None  # Under which it is stored


AskModel = Callable[[ModelQuestion], Coroutine[Any, Any, ModelAnswer]]
"""Asks models. What went wrong is in the answer, but for a run that cannot keep it."""

# Where a model is reached, and with which key: from a case's words and the user's environment.

_PROVIDERS = ("anthropic", "openai", "openai-chat", "openai-responses", "scripted")
_INSTALL = "pip install 'skillup-eval[models]'"
_EXAMPLES = "`anthropic:…`, `openai:…`, or `scripted:FILE`"
_FAMILIES = {
    "anthropic": ("ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL", "https://api.anthropic.com"),
    "openai": ("OPENAI_API_KEY", "OPENAI_BASE_URL", "https://api.openai.com/v1"),
}
"""Of providers that share them: the variables of key and address, and the address."""


class CannotAskError(Exception):
    """A model that cannot be asked as things are; the message says why and what to do."""


@frozen
class Endpoint:
    name: str  # As the provider knows it
    api: Literal["anthropic", "chat", "responses"]
    base_url: str
    key: str | None = field(repr=False)  # None: the server asks for none


def parse_model(text: str) -> tuple[str, str]:
    """``openai:gpt-5.5`` → ``openai``, ``gpt-5.5``. Raises CannotAskError: how to write it."""
    provider, colon, name = text.partition(":")
    provider, name = provider.strip(), name.strip()
    if not colon or not name or provider not in _PROVIDERS:
        others = "by `openai-chat:NAME` and its OpenAI-compatible `base_url`"
        fix = f"write {_EXAMPLES}; another provider is reached {others}"
        raise CannotAskError(f"`{text}` names no model: {fix}")
    return provider, name


def family_of(model: str) -> str:
    """``openai-chat:…`` → ``openai``: providers of one family share key, address and client."""
    provider = model.partition(":")[0].strip()
    return "openai" if provider.startswith("openai") else provider


def environment_address(model: JudgeModel, environment: Mapping[str, str]) -> str | None:
    """The address that only the environment names, if `model` is asked there."""
    if model.base_url or (family := family_of(model.model)) not in _FAMILIES:
        return None
    return environment.get(_FAMILIES[family][1]) or None


def endpoint_of(model: JudgeModel, environment: Mapping[str, str]) -> Endpoint:
    """How to reach `model`, which is none of ``scripted:``. Raises CannotAskError."""
    provider, name = parse_model(model.model)
    family = family_of(model.model)
    if any(find_spec(module) is None for module in ("pydantic_ai", family)):
        raise CannotAskError(f"asking a model needs an extra that is not installed: {_INSTALL}")
    key_variable, address_variable, own = _FAMILIES[family]
    users = environment.get(address_variable)
    base_url = (model.base_url or users or own).strip()
    if not base_url.startswith(("http://", "https://")):
        raise CannotAskError(f"`base_url: {base_url}` is no address: it begins with http(s)://")
    variable = model.api_key_env or key_variable
    key = environment.get(variable, "").strip() or None
    keyless = model.api_key_env is None and family == "openai" and base_url != own
    if key is None and not keyless:
        raise CannotAskError(f"`{model.model}` needs a key: set the variable {variable}")
    if key is not None and model.base_url is not None:
        why = address_problem("base_url", model.base_url, environment, users, own)
        if why is not None:
            raise CannotAskError(why)
    # Servers that say they are compatible hardly ever speak the Responses API.
    chat = provider == "openai-chat" or (provider == "openai" and base_url != own)
    api: Literal["anthropic", "chat", "responses"] = "chat" if chat else "responses"
    return Endpoint(name, "anthropic" if provider == "anthropic" else api, base_url, key)
