"""How long a model that is out of breath is waited for."""

from __future__ import annotations

import threading
import time

import anyio
import pytest

from skillup.judges.models.attempts import RetryPatience
from skillup.judges.models.client import Asker
from skillup.judges.models.question import ModelAnswer
from skillup.ratelimit.slow_down import OwnPacing, Passage
from skillup.schema.record import TurnError
from tests.support.asking import APIS, KEYS, RIGHT, asking, question
from tests.support.model_server import HttpError, ModelRequest, ModelServer, Reply, Structured
from tests.support.virtual_time import HurriedTime

PATIENCE = RetryPatience(attempts=5, first_wait=1.0, longest_wait=3.0, longest_asked_wait=60.0)


@pytest.mark.parametrize(("attempt", "longest"), [(2, 1.0), (3, 2.0), (4, 3.0), (5, 3.0)])
def test_waits_double_up_to_a_limit_and_differ(attempt: int, longest: float) -> None:
    waits = {PATIENCE.wait_before(attempt, None) for _ in range(50)}
    assert len(waits) > 1
    assert all(wait is not None and longest / 2 <= wait <= longest for wait in waits)


def test_after_the_last_attempt_there_is_none() -> None:
    assert PATIENCE.wait_before(6, None) is None
    assert PATIENCE.wait_before(6, 1.0) is None


def test_what_the_server_asks_for_is_waited_and_a_little_more() -> None:
    waits = [PATIENCE.wait_before(2, 20.0) for _ in range(50)]
    assert all(wait is not None and 20.0 < wait < 21.0 for wait in waits)


def test_who_asks_for_too_long_a_wait_is_not_asked_again() -> None:
    assert PATIENCE.wait_before(2, 60.0) is not None
    assert PATIENCE.wait_before(2, 61.0) is None


def test_what_was_refused_is_asked_again_by_one_at_a_time_until_one_is_answered() -> None:
    lock = threading.Lock()
    under_way: list[int] = []
    beside: dict[int, int] = {}
    all_there = threading.Barrier(4)

    def reply(request: ModelRequest) -> Reply:
        with lock:
            number = len(beside) + 1
            beside[number] = len(under_way)
            under_way.append(number)
        if number <= 4:
            all_there.wait(30)
        elif number <= 6:
            time.sleep(0.3)  # others would come meanwhile
        with lock:
            under_way.remove(number)
        return HttpError(429, "slow down") if number <= 5 else Structured(RIGHT)

    async def work(asker: Asker) -> list[ModelAnswer]:
        answers: list[ModelAnswer] = []

        async def ask(number: int) -> None:
            asked = question("anthropic", server.url, f"question {number}")
            answers.append(await asker.ask(asked))

        async with anyio.create_task_group() as group:
            for number in range(4):
                group.start_soon(ask, number)
        return answers

    with ModelServer(reply) as server:
        answers = asking(work, pacing=OwnPacing(120))
    assert [answer.error for answer in answers] == [None] * 4
    # Four refusals are one slow-down; the next two are asked alone, and the second is answered.
    assert len(server.requests) == 9
    assert (beside[5], beside[6]) == (0, 0)


def test_when_nothing_was_accepted_for_so_long_it_is_an_error() -> None:
    with ModelServer(lambda _: HttpError(529, "overloaded")) as server:
        asked = question("anthropic", server.url)
        answer = asking(lambda asker: asker.ask(asked), pacing=OwnPacing(0.5))
    assert answer.error is not None
    assert "529" in answer.error
    assert "nothing was accepted in 0.5 s of waiting" in answer.error
    assert len(server.requests) >= 2


def test_once_patience_is_at_its_end_each_question_is_asked_once_until_one_is_answered() -> None:
    asked: list[str] = []

    def reply(request: ModelRequest) -> Reply:
        asked.append(request.latest)
        return Structured(RIGHT) if request.latest == "the fourth" else HttpError(429, "no")

    async def work(asker: Asker) -> list[bool]:
        texts = ("the first", "the second", "the third", "the fourth", "the fifth")
        return [
            (await asker.ask(question("anthropic", server.url, text))).error is None
            for text in texts
        ]

    with ModelServer(reply) as server:
        answered = asking(work, pacing=OwnPacing(0.5))
    assert answered == [False, False, False, True, False]
    assert [asked.count(text) for text in ("the second", "the third", "the fourth")] == [1, 1, 1]
    assert asked.count("the fifth") >= 2  # patience is there again


class Told(OwnPacing):
    """Remembers where requests went, and what it was told of their refusals."""

    def __init__(self, *, open_: bool = True) -> None:
        super().__init__(600, **HurriedTime().both)
        self.went: list[tuple[str, str | None]] = []
        self.refusals: list[TurnError] = []
        self.accepted = 0
        self.is_open = open_

    def of_model(self, base_url: str, key: str | None) -> Passage:
        self.went.append((base_url, key))
        return _ToldPassage(self, super().of_model(base_url, key))


class _ToldPassage:
    def __init__(self, told: Told, inner: Passage) -> None:
        self._told = told
        self._inner = inner

    async def ready(self) -> bool:
        return self._told.is_open and await self._inner.ready()

    async def refused(self, error: TurnError) -> str | None:
        self._told.refusals.append(error)
        return await self._inner.refused(error)

    async def accepted(self) -> None:
        self._told.accepted += 1
        await self._inner.accepted()


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize(
    ("status", "kind"), [(429, "rate_limit"), (503, "overloaded"), (529, "overloaded")]
)
def test_a_refusal_is_told_with_its_kind_and_how_long_is_asked_for(
    api: str, status: int, kind: str
) -> None:
    refused = [HttpError(status, "slow down", {"retry-after": "40"}), HttpError(status, "slowly")]

    def reply(_: ModelRequest) -> Reply:
        return refused.pop(0) if refused else Structured(RIGHT)

    told = Told()
    with ModelServer(reply) as server:
        asked = question(api, server.url)
        answer = asking(lambda asker: asker.ask(asked), pacing=told)
        key = KEYS["ANTHROPIC_API_KEY" if api == "anthropic" else "OPENAI_API_KEY"]
        (went,) = told.went
    assert answer.error is None
    assert went[0].startswith(server.url)
    assert went[1] == key
    assert [(error.kind, error.message) for error in told.refusals] == [
        (kind, "slow down"),
        (kind, "slowly"),
    ]
    assert [error.retry_after_seconds for error in told.refusals] == [40.0, None]
    assert told.accepted == 1


@pytest.mark.parametrize("status", [400, 401, 402, 500])
def test_other_trouble_says_nothing_of_the_pace(status: int) -> None:
    told = Told()
    with ModelServer(lambda _: HttpError(status, "no")) as server:
        asked = question("anthropic", server.url)
        assert asking(lambda asker: asker.ask(asked), pacing=told).error is not None
    assert (told.refusals, told.accepted) == ([], 0)


def test_without_patience_a_refusal_is_an_attempt_like_others() -> None:
    with ModelServer(lambda _: HttpError(429, "no")) as server:
        asked = question("anthropic", server.url)
        answer = asking(lambda asker: asker.ask(asked), pacing=OwnPacing(0))
    assert len(server.requests) == 3
    assert "(3 attempts)" in (answer.error or "")


def test_what_a_run_that_ends_does_not_let_through_is_not_asked() -> None:
    with ModelServer(lambda _: Structured(RIGHT)) as server:
        asked = question("anthropic", server.url)
        answer = asking(lambda asker: asker.ask(asked), pacing=Told(open_=False))
    assert server.requests == []
    assert "was not asked: the run has ended" in (answer.error or "")


def test_a_question_that_is_cancelled_while_it_waits_keeps_no_other_back() -> None:
    waiting = anyio.Event()
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        if not waiting.is_set():
            waiting.set()
            await anyio.sleep_forever()
        slept.append(seconds)

    refuses = [True]

    def reply(_: ModelRequest) -> Reply:
        return HttpError(429, "no") if refuses[0] else Structured(RIGHT)

    async def work(asker: Asker) -> ModelAnswer:
        async with anyio.create_task_group() as group:
            group.start_soon(asker.ask, question("anthropic", server.url, "given up"))
            await waiting.wait()
            group.cancel_scope.cancel()
        refuses[0] = False
        return await asker.ask(question("anthropic", server.url, "another"))

    with ModelServer(reply) as server:
        answer = asking(work, pacing=OwnPacing(600, clock=lambda: sum(slept), sleep=sleep))
    assert answer.error is None
    assert len(slept) == 1
