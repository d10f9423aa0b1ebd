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
_FAMILIES = {
    "anthropic": ("ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL", "https://api.anthropic.com"),
    "openai": ("OPENAI_API_KEY", "OPENAI_BASE_URL", "https://api.openai.com/v1"),
}
"""Of providers that share them: the variables of key and address, and the address."""


class CannotAskError(Exception):
    """A model that cannot be asked as things are; the message says why and what to do."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    name: str  # As the provider knows it
    api: Literal["anthropic", "chat", "responses"]
    base_url: str
    key: str | None = field(repr=False)  # None: the server asks for none


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


def _family(model: str) -> str:
    provider = model.partition(":")[0].strip()
    return "openai" if provider.startswith("openai") else provider


def is_scripted(model: str) -> bool:
    return _family(model) == "scripted"


def environment_address(model: JudgeModel, environment: Mapping[str, str]) -> str | None:
    """The address that only the environment names, if `model` is asked there."""
    if model.base_url or (family := _family(model.model)) not in _FAMILIES:
        return None
    return environment.get(_FAMILIES[family][1]) or None


def endpoint_of(model: JudgeModel, environment: Mapping[str, str]) -> Endpoint:
    """How to reach `model`, which is none of ``scripted:``. Raises CannotAskError."""
    provider, name = parse_model(model.model)
    family = _family(model.model)
    if any(find_spec(module) is None for module in ("pydantic_ai", family)):
        raise CannotAskError(f"asking a model needs an extra that is not installed: {INSTALL}")
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
    if provider == "anthropic":
        return Endpoint(name, "anthropic", base_url, key)
    # Servers that say they are compatible hardly ever speak the Responses API.
    chat = provider == "openai-chat" or (provider == "openai" and base_url != own)
    return Endpoint(name, "chat" if chat else "responses", base_url, key)
