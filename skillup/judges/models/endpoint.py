"""Where a model is reached, and with which key: from a case's words and the user's environment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Literal

from skillup.load.trust import address_problem
from skillup.schema.judge import JudgeModel

PROVIDERS = ("anthropic", "openai", "openai-chat", "openai-responses", "scripted")
INSTALL = "pip install 'skillup-eval[models]'"
_EXAMPLES = "`anthropic:…`, `openai:…`, or `scripted:FILE`"
_KEYS = {"anthropic": "ANTHROPIC_API_KEY", "openai": "OPENAI_API_KEY"}
_ADDRESSES = {"anthropic": "ANTHROPIC_BASE_URL", "openai": "OPENAI_BASE_URL"}
_OWN_ADDRESSES = {"anthropic": "https://api.anthropic.com", "openai": "https://api.openai.com/v1"}


class CannotAskError(Exception):
    """A model that cannot be asked as things are; the message says why and what to do.

    It does not leave this package: it becomes the `error` of an answer, or a case's problem.
    """


@dataclass(frozen=True, slots=True)
class Endpoint:
    """All that is needed to reach a model."""

    name: str
    """As the provider knows it."""
    api: Literal["anthropic", "chat", "responses"]
    base_url: str
    key: str | None = field(repr=False)
    """None: the server asks for none."""


def parse_model(text: str) -> tuple[str, str]:
    """``openai:gpt-5.5`` → ``openai``, ``gpt-5.5``. Raises CannotAskError: how to write it."""
    provider, colon, name = text.partition(":")
    provider, name = provider.strip(), name.strip()
    if not colon or not name:
        raise CannotAskError(f"`{text}` names no model: write {_EXAMPLES}")
    if provider not in PROVIDERS:
        raise CannotAskError(
            f"`{text}`: there is no provider `{provider}`: write {_EXAMPLES}; "
            "another one is reached by `openai-chat:NAME` and its OpenAI-compatible `base_url`"
        )
    return provider, name


def is_scripted(model: str) -> bool:
    """Whether it is a written-down judge."""
    return _family(model) == "scripted"


def _family(model: str) -> str:
    """Of providers that share addresses and keys."""
    provider = model.partition(":")[0].strip()
    return "openai" if provider.startswith("openai") else provider


def endpoint_of(
    model: JudgeModel, environment: Mapping[str, str], *, embeddings: bool = False
) -> Endpoint:
    """How to reach `model`, which is none of ``scripted:``.

    Raises CannotAskError: no such provider, the extra is not installed, there is no key, or it is
    to make `embeddings` and does not.
    """
    provider, name = parse_model(model.model)
    family = _family(model.model)
    if embeddings and family != "openai":
        raise CannotAskError(f"`{model.model}` makes no embeddings: write `openai:…`")
    if any(find_spec(module) is None for module in ("pydantic_ai", family)):
        raise CannotAskError(f"asking a model needs an extra that is not installed: {INSTALL}")
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
    if provider == "anthropic":
        return Endpoint(name, "anthropic", base_url, key)
    # Servers that say they are compatible hardly ever speak the Responses API.
    chat = provider == "openai-chat" or (provider == "openai" and base_url != own)
    return Endpoint(name, "chat" if chat else "responses", base_url, key)


def embedding_model(model: str, like: JudgeModel | None) -> JudgeModel:
    """The embedding model `model`, with the address and key of `like` if it is of its family."""
    if like is None or _family(like.model) != _family(model):
        like = JudgeModel(model=model)
    return like.model_copy(update={"model": model})


def address_of(model: JudgeModel, environment: Mapping[str, str]) -> str | None:
    """The address that `model` is asked at, if anybody names one; None: the provider's own."""
    variable = _ADDRESSES.get(_family(model.model), "")
    return model.base_url or environment.get(variable) or None


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
