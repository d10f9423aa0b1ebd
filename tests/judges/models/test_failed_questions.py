"""What a model could not answer is settled for the trial that asked."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest

from skillup.judges.models.client import ModelOptions, Models
from skillup.ratelimit.slow_down import OwnPacing
from tests.support.asking import HASTY, KEYS, question
from tests.support.model_server import HttpError, ModelServer

# Which models are still offered, the providers' clients know better with every version.
pytestmark = pytest.mark.filterwarnings("ignore:The model .* is deprecated:DeprecationWarning")


def test_what_failed_is_not_asked_again_for_the_same_trial() -> None:
    with ModelServer(lambda request: HttpError(400, "no")) as server:
        asked = question("anthropic", server.url)
        like = question("openai-chat", server.url).model

        async def main() -> list[str | None]:
            models = Models(ModelOptions(KEYS, str, patience=HASTY, pacing=OwnPacing(0)))
            told: list[str | None] = []
            for trial in ("1", "1", "2", None):
                asker = models.seen_from(Path(), trial=trial)
                told.append((await asker.ask(asked)).error)
            await models.close()
            told.append((await models.seen_from(Path(), trial="1").ask(asked)).error)
            unreachable = models.seen_from(Path(), trial="1")
            first = await unreachable.embed("anthropic:m", ["a"], like)
            second = await unreachable.embed("anthropic:m", ["a"], like)
            assert (first.cached, second.cached, second.error) == (False, True, first.error)
            await models.close()
            return told

        told = anyio.run(main)
    assert len(server.requests) == 4
    assert len(set(told)) == 1
    assert told[0]
