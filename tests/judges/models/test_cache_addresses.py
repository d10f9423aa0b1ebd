"""Addresses that only the environment names, and the answers of their servers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from skillup.judges.models.question import ModelAnswer
from tests.support.asking import KEYS, RIGHT, Verdict, asking, cache, question
from tests.support.model_server import ModelServer, Structured

# Which models are still offered, the providers' clients know better with every version.
pytestmark = pytest.mark.filterwarnings("ignore:The model .* is deprecated:DeprecationWarning")


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with ModelServer(lambda request: Structured(RIGHT)) as running:
        yield running


def test_an_address_of_the_environment_makes_another_question_for_other_runs(
    server: ModelServer, tmp_path: Path
) -> None:
    asked = question("anthropic", server.url, base_url=None)

    def at(address: str, run: str) -> ModelAnswer:
        return asking(
            lambda asker: asker.ask(asked),
            environment={**KEYS, "ANTHROPIC_BASE_URL": address},
            cached=cache(tmp_path / run, tmp_path / "shared"),
        )

    no = {"passed": False, "reason": "It does not."}
    with ModelServer(lambda request: Structured(no)) as second:
        answers = [at(server.url, "a"), at(second.url, "b"), at(second.url, "c")]
    assert [answer.cached for answer in answers] == [False, False, True]
    assert [answer.value for answer in answers] == [
        Verdict.model_validate(said) for said in (RIGHT, no, no)
    ]


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


def test_a_password_in_an_address_of_the_environment_is_not_kept(
    server: ModelServer, tmp_path: Path
) -> None:
    asking(
        lambda asker: asker.ask(question("anthropic", server.url, base_url=None)),
        environment={
            **KEYS,
            "ANTHROPIC_BASE_URL": server.url.replace("://", "://me:hidden-word@"),
        },
        cached=cache(tmp_path / "run", tmp_path / "shared"),
    )
    files = list(tmp_path.rglob("*.json"))
    assert len(files) == 2
    assert not any("hidden-word" in file.read_text() for file in files)
