"""Models asked in tests: questions to a server on loopback, with the providers' real clients."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import TypeVar

import anyio
from pydantic import Field

from skillup.judges.models import AnswerCache, AnswerFolder, Models
from skillup.judges.question import AnswerForm, AskModel, ModelQuestion
from skillup.ratelimit import RateLimiter
from skillup.redaction.secrets import NO_SECRETS
from skillup.schema.judge_model import JudgeModel

T = TypeVar("T")

KEYS = {
    "ANTHROPIC_API_KEY": "sk-ant-0123456789",
    "OPENAI_API_KEY": "sk-oai-0123456789",
    "SKILLUP_TRUST": "1",
}
APIS = ("anthropic", "openai-responses", "openai-chat")
MODELS = {
    "anthropic": "anthropic:claude-haiku-4-5",
    "openai-responses": "openai-responses:gpt-4.1",
    "openai-chat": "openai-chat:gpt-4.1",
}


class Verdict(AnswerForm):
    passed: bool
    reason: str = Field(min_length=1)


RIGHT = {"passed": True, "reason": "It asks before it deletes."}


def question(
    api: str, url: str, prompt: str = "Does it ask first?", *, sample: int = 0, **settings: object
) -> ModelQuestion:
    """Of a model that `api` reaches at `url`, which is without a path."""
    base_url = url if api == "anthropic" else f"{url}/v1"
    model = JudgeModel.model_validate(
        {"model": MODELS[api], "base_url": base_url, "timeout_seconds": 60.0, **settings}
    )
    return ModelQuestion(model, "You judge answers.", prompt, Verdict, sample)


def cache(
    run: Path | None = None, shared: Path | None = None, *, anew: bool = False
) -> AnswerCache:
    """A cache in these directories, as a run has it; the keys of `KEYS` are masked."""
    mask = NO_SECRETS.also_of(KEYS).mask
    return AnswerCache(
        AnswerFolder(run, mask) if run else None,
        AnswerFolder(shared, mask) if shared else None,
        anew=anew,
    )


def asking(
    work: Callable[[AskModel], Awaitable[T]],
    *,
    environment: Mapping[str, str] = KEYS,
    cached: AnswerCache | None = None,
    rate_limiter: RateLimiter | None = None,
    suite_root: Path = Path(),
) -> T:
    """What `work` makes of an asker, in an event loop of its own; refusals are errors."""

    async def main() -> T:
        kept, limiter = cached or AnswerCache(), rate_limiter or RateLimiter(0)
        models = Models(environment, NO_SECRETS.also_of(environment), kept, limiter)
        try:
            return await work(models.asker(suite_root))
        finally:
            await models.close()

    return anyio.run(main)
