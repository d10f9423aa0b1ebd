"""How models are named: ``PROVIDER:NAME``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from skillup.judges.models.failures import CannotAskError

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
