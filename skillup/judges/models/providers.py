"""The providers' clients: one for each address and key, opened at first use, closed together."""

from __future__ import annotations

from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any

from skillup.judges.models.access import Access
from skillup.judges.models.received import read_bounded

if TYPE_CHECKING:
    from pydantic_ai.embeddings import EmbeddingModel
    from pydantic_ai.models import Model

_NO_KEY = "none"
"""Sent to servers that ask for no key: the client refuses to have none."""
_HOOKS: dict[str, list[Any]] = {"response": [read_bounded]}


class Providers:
    """Models of clients that are shared. To be used, and closed, in one event loop."""

    def __init__(self) -> None:
        self._open: dict[tuple[str, str, str | None], Any] = {}
        self._closing = AsyncExitStack()

    def model(self, access: Access) -> Model:
        """The model at `access`."""
        match access.api:
            case "anthropic":
                from pydantic_ai.models.anthropic import AnthropicModel

                return AnthropicModel(access.name, provider=self._anthropic(access))
            case "chat":
                from pydantic_ai.models.openai import OpenAIChatModel

                return OpenAIChatModel(access.name, provider=self._openai(access))
            case "responses":
                from pydantic_ai.models.openai import OpenAIResponsesModel

                return OpenAIResponsesModel(access.name, provider=self._openai(access))

    def embedding_model(self, access: Access) -> EmbeddingModel:
        """The embedding model at `access`, which is one of the OpenAI family."""
        from pydantic_ai.embeddings.openai import OpenAIEmbeddingModel

        return OpenAIEmbeddingModel(access.name, provider=self._openai(access))

    async def close(self) -> None:
        """Closes every connection."""
        self._open.clear()
        await self._closing.aclose()

    def _anthropic(self, access: Access) -> Any:
        from anthropic import AsyncAnthropic, DefaultAsyncHttpxClient
        from pydantic_ai.providers.anthropic import AnthropicProvider

        key = ("anthropic", access.base_url, access.key)
        if key not in self._open:
            client = AsyncAnthropic(
                api_key=access.key,
                base_url=access.base_url,
                max_retries=0,
                open_telemetry=False,
                http_client=DefaultAsyncHttpxClient(event_hooks=_HOOKS),
            )
            self._closing.push_async_callback(client.close)
            self._open[key] = AnthropicProvider(anthropic_client=client)
        return self._open[key]

    def _openai(self, access: Access) -> Any:
        from openai import AsyncOpenAI, DefaultAsyncHttpxClient
        from pydantic_ai.providers.openai import OpenAIProvider

        key = ("openai", access.base_url, access.key)
        if key not in self._open:
            client = AsyncOpenAI(
                api_key=access.key or _NO_KEY,
                base_url=access.base_url,
                max_retries=0,
                http_client=DefaultAsyncHttpxClient(event_hooks=_HOOKS),
            )
            self._closing.push_async_callback(client.close)
            self._open[key] = OpenAIProvider(openai_client=client)
        return self._open[key]
