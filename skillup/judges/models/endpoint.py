"""Where a model is reached, and with which key: from a case's words and the user's environment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Literal, get_args

from skillup.load.trust import address_problem
from skillup.schema.judge import JudgeModel

# What keeps a model from being asked.


class CannotAskError(Exception):
    """A model that cannot be asked as things are; the message says why and what to do.

    It does not leave this package: it becomes the `error` of an answer, or a case's problem.
    """


# How models are named: ``PROVIDER:NAME``.

Provider = Literal["anthropic", "openai", "openai-chat", "openai-responses", "scripted"]
PROVIDERS: tuple[Provider, ...] = get_args(Provider)

_EXAMPLES = "`anthropic:…`, `openai:…`, or `scripted:FILE`"


@dataclass(frozen=True, slots=True)
class ModelName:
    """``openai:gpt-5.5`` → provider ``openai``, name ``gpt-5.5``."""

    provider: Provider
    name: str


def parse_model(text: str) -> ModelName:
    """The parts of a model's name. Raises CannotAskError, which says how to write it."""
    provider, colon, name = text.partition(":")
    provider, name = provider.strip(), name.strip()
    if not colon or not name:
        raise CannotAskError(f"`{text}` names no model: write {_EXAMPLES}")
    for known in PROVIDERS:
        if provider == known:
            return ModelName(known, name)
    raise CannotAskError(
        f"`{text}`: there is no provider `{provider}`: write {_EXAMPLES}; "
        "another one is reached by `openai-chat:NAME` and its OpenAI-compatible `base_url`"
    )


Api = Literal["anthropic", "chat", "responses"]

INSTALL = "pip install 'skillup-eval[models]'"

_KEYS = {"anthropic": "ANTHROPIC_API_KEY", "openai": "OPENAI_API_KEY"}
_ADDRESSES = {"anthropic": "ANTHROPIC_BASE_URL", "openai": "OPENAI_BASE_URL"}
_OWN_ADDRESSES = {"anthropic": "https://api.anthropic.com", "openai": "https://api.openai.com/v1"}


@dataclass(frozen=True, slots=True)
class Endpoint:
    """All that is needed to reach a model."""

    name: str
    """As the provider knows it."""
    api: Api
    base_url: str
    key: str | None = field(repr=False)
    """None: the server asks for none."""


def endpoint_of(model: JudgeModel, environment: Mapping[str, str]) -> Endpoint:
    """How to reach `model`, which is none of ``scripted:``.

    Raises CannotAskError: no such provider, the extra is not installed, or there is no key.
    """
    named = parse_model(model.model)
    family = _family(named.provider)
    _require(family)
    own = _OWN_ADDRESSES[family]
    base_url = (address_of(model, environment) or own).strip()
    if not base_url.startswith(("http://", "https://")):
        raise CannotAskError(f"`base_url: {base_url}` is no address: it begins with http(s)://")
    key = _key(model, family, base_url == own, environment)
    if key is not None and model.base_url is not None:
        users = environment.get(_ADDRESSES[family])
        why = address_problem("base_url", model.base_url, environment, users, own)
        if why is not None:
            raise CannotAskError(why)
    return Endpoint(named.name, _api(named, base_url == own), base_url, key)


def embeddings_endpoint_of(
    model: str, like: JudgeModel, environment: Mapping[str, str]
) -> Endpoint:
    """How to reach the embedding model `model`: as `like`, where that is of the same family.

    Raises CannotAskError, also for providers that make no embeddings.
    """
    if _family(parse_model(model).provider) != "openai":
        raise CannotAskError(f"`{model}` makes no embeddings: write `openai:…`")
    return endpoint_of(embedding_model(model, like), environment)


def embedding_model(model: str, like: JudgeModel) -> JudgeModel:
    """The embedding model `model`, with the address and key of `like` if it is of its family.

    Raises CannotAskError: no such provider.
    """
    same = _family(parse_model(like.model).provider) == _family(parse_model(model).provider)
    base = like if same else JudgeModel(model=model)
    return base.model_copy(update={"model": model})


def address_of(model: JudgeModel, environment: Mapping[str, str]) -> str | None:
    """The address that `model` is asked at, as far as it is told; None: the provider's own.

    Raises CannotAskError: no such provider.
    """
    variable = _ADDRESSES.get(_family(parse_model(model.model).provider), "")
    return model.base_url or environment.get(variable) or None


def _family(provider: Provider) -> str:
    return provider if provider in ("anthropic", "scripted") else "openai"


def _api(named: ModelName, own_address: bool) -> Api:
    match named.provider:
        case "anthropic":
            return "anthropic"
        case "openai-chat":
            return "chat"
        case "openai-responses":
            return "responses"
        case _:
            # Servers that say they are compatible hardly ever speak the Responses API.
            return "responses" if own_address else "chat"


def _require(family: str) -> None:
    missing = [name for name in ("pydantic_ai", family) if find_spec(name) is None]
    if missing:
        raise CannotAskError(f"asking a model needs an extra that is not installed: {INSTALL}")


def _key(
    model: JudgeModel, family: str, own_address: bool, environment: Mapping[str, str]
) -> str | None:
    variable = model.api_key_env or _KEYS[family]
    key = environment.get(variable, "").strip()
    if key:
        return key
    if model.api_key_env is None and family == "openai" and not own_address:
        return None
    raise CannotAskError(f"`{model.model}` needs a key: set the variable {variable}")
