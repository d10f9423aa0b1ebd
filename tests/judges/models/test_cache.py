"""Answers are kept: what was asked before is not asked again."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path

import anyio
import pytest

from skillup.judges.models import AnswerCache
from skillup.judges.question import AskModel, ModelAnswer, ModelQuestion
from tests.support.asking import APIS, KEYS, RIGHT, Verdict, asking, cache, question
from tests.support.model_server import HttpError, ModelRequest, ModelServer, Reply, Structured

# Which models are still offered, the providers' clients know better with every version.
pytestmark = pytest.mark.filterwarnings("ignore:The model .* is deprecated:DeprecationWarning")


def ask(cached: AnswerCache, *asked: ModelQuestion) -> list[ModelAnswer]:
    async def work(asker: AskModel) -> list[ModelAnswer]:
        return [await asker(one) for one in asked]

    return asking(work, cached=cached)


@pytest.fixture
def server() -> object:
    with ModelServer(lambda request: Structured(RIGHT)) as running:
        yield running


@pytest.mark.parametrize("api", APIS)
def test_what_is_in_the_run_or_shared_is_not_asked_again_unless_all_is_asked_anew(
    api: str, server: ModelServer, tmp_path: Path
) -> None:
    asked, shared = question(api, server.url), tmp_path / "shared"
    (first,) = ask(cache(tmp_path / "a", shared), asked)
    (again,) = ask(cache(tmp_path / "a"), asked)
    assert (first.cached, again) == (False, replace(first, cached=True))
    (second,) = ask(cache(tmp_path / "b", shared), asked)
    (alone,) = ask(cache(tmp_path / "b"), asked)
    assert (second.cached, alone.cached) == (True, True), "what runs share is kept in each, too"
    assert len(server.requests) == 1
    anew = ask(cache(tmp_path / "a", shared, anew=True), asked, asked)
    assert ([one.cached for one in anew], len(server.requests)) == ([False, True], 2)


def test_errors_are_not_kept(tmp_path: Path) -> None:
    broken = True

    def script(request: ModelRequest) -> Reply:
        return HttpError(400) if broken else Structured(RIGHT)

    with ModelServer(script) as server:
        asked = question("anthropic", server.url)
        (failed,) = ask(cache(tmp_path / "run", tmp_path / "shared"), asked)
        broken = False
        (later,) = ask(cache(tmp_path / "run", tmp_path / "shared"), asked)
    assert failed.error is not None
    assert later.value is not None
    assert not later.cached


@pytest.mark.parametrize("damage", ["", "{", '{"answer": 1}', "[]", "\udcff"])
def test_damaged_files_are_not_there(server: ModelServer, tmp_path: Path, damage: str) -> None:
    asked = question("anthropic", server.url)
    ask(cache(tmp_path), asked)
    (file,) = tmp_path.glob("*.json")
    file.write_bytes(damage.encode(errors="surrogateescape"))
    (again,) = ask(cache(tmp_path), asked)
    assert not again.cached
    assert ask(cache(tmp_path), asked)[0].cached


def test_a_shared_cache_that_cannot_be_written_is_done_without(
    server: ModelServer, tmp_path: Path
) -> None:
    (tmp_path / "shared").write_text("not a directory")
    (answer,) = ask(cache(tmp_path / "run", tmp_path / "shared"), question("anthropic", server.url))
    assert answer.value is not None


def test_the_same_asked_at_once_is_asked_once() -> None:
    everybody_waits = threading.Event()

    def script(request: ModelRequest) -> Reply:
        everybody_waits.wait(30)
        return Structured(RIGHT)

    with ModelServer(script) as server:
        asked = question("anthropic", server.url)

        async def work(asker: AskModel) -> list[ModelAnswer]:
            answers: list[ModelAnswer] = []

            async def one() -> None:
                answers.append(await asker(asked))

            async with anyio.create_task_group() as group:
                for _ in range(5):
                    group.start_soon(one)
                await anyio.to_thread.run_sync(server.wait_for_requests)
                everybody_waits.set()
            return answers

        answers = asking(work)
    assert len(server.requests) == 1
    assert sorted(answer.cached for answer in answers) == [False, True, True, True, True]
    assert len({str(answer.value) for answer in answers}) == 1


def test_secrets_reach_neither_the_model_nor_the_files(tmp_path: Path) -> None:
    key = KEYS["ANTHROPIC_API_KEY"]
    leak = {"passed": True, "reason": f"It printed {key}."}
    with ModelServer(lambda request: Structured(leak)) as server:
        asked = question("anthropic", server.url, f"It said: {key}")
        (answer,) = ask(cache(tmp_path), asked)
        masked = question("anthropic", server.url, "It said: ***ANTHROPIC_API_KEY***")
        (replayed,) = ask(cache(tmp_path), masked)
    assert answer.value == Verdict(passed=True, reason="It printed ***ANTHROPIC_API_KEY***.")
    assert key not in server.requests[0].raw_text
    assert key not in "".join(file.read_text() for file in tmp_path.glob("*.json"))
    assert replayed.cached


def test_answers_of_an_address_of_the_environment_are_not_shared(
    server: ModelServer, tmp_path: Path
) -> None:
    asked = question("anthropic", server.url, base_url=None)
    environment = {**KEYS, "ANTHROPIC_BASE_URL": server.url}
    for run in ("a", "b"):
        kept = cache(tmp_path / run, tmp_path / "shared")
        answer = asking(lambda a: a(asked), environment=environment, cached=kept)
        assert not answer.cached
    assert not (tmp_path / "shared").exists()
    again = asking(lambda a: a(asked), environment={}, cached=cache(tmp_path / "b"))
    assert again.value == Verdict.model_validate(RIGHT)
