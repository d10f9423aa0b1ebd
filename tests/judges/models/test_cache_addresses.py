"""Addresses that only the environment names, and the answers of their servers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.asking import KEYS, RIGHT, Verdict, asking, cache, question
from tests.support.model_server import ModelServer, Structured

# Which models are still offered, the providers' clients know better with every version.
pytestmark = pytest.mark.filterwarnings("ignore:The model .* is deprecated:DeprecationWarning")


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with ModelServer(lambda request: Structured(RIGHT)) as running:
        yield running


def test_answers_of_an_address_of_the_environment_are_not_shared(
    server: ModelServer, tmp_path: Path
) -> None:
    asked = question("anthropic", server.url, base_url=None)
    environment = {**KEYS, "ANTHROPIC_BASE_URL": server.url}
    for run in ("a", "b"):
        kept = cache(tmp_path / run, tmp_path / "shared")
        answer = asking(lambda a: a.ask(asked), environment=environment, cached=kept)
        assert not answer.cached
    assert not (tmp_path / "shared").exists()


def test_a_run_answers_for_itself_whatever_address_the_environment_had(
    server: ModelServer, tmp_path: Path
) -> None:
    asked = question("anthropic", server.url, base_url=None)
    for environment in ({**KEYS, "ANTHROPIC_BASE_URL": server.url}, {}):
        answer = asking(
            lambda asker: asker.ask(asked), environment=environment, cached=cache(tmp_path / "run")
        )
        assert answer.value == Verdict.model_validate(RIGHT)
    assert len(server.requests) == 1
