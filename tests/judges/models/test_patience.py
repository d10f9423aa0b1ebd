"""How long a model that is out of breath is waited for."""

from __future__ import annotations

import threading
import time

import anyio
import pytest

from skillup.judges.models.client import Asker
from skillup.judges.models.patience import Patience
from skillup.judges.models.question import ModelAnswer
from tests.support.asking import RIGHT, asking, question
from tests.support.model_server import HttpError, ModelRequest, ModelServer, Reply, Structured

PATIENCE = Patience(attempts=5, first_wait=1.0, longest_wait=3.0, longest_asked_wait=60.0)


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
        answers = asking(work, patience=Patience(refusals=120))
    assert [answer.error for answer in answers] == [None] * 4
    # Four refusals are one slow-down; the next two are asked alone, and the second is answered.
    assert len(server.requests) == 9
    assert (beside[5], beside[6]) == (0, 0)


def test_when_nothing_was_accepted_for_so_long_it_is_an_error() -> None:
    with ModelServer(lambda _: HttpError(529, "overloaded")) as server:
        asked = question("anthropic", server.url)
        answer = asking(lambda asker: asker.ask(asked), patience=Patience(refusals=0.5))
    assert answer.error is not None
    assert "529" in answer.error
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
        answered = asking(work, patience=Patience(refusals=0.5))
    assert answered == [False, False, False, True, False]
    assert [asked.count(text) for text in ("the second", "the third", "the fourth")] == [1, 1, 1]
    assert asked.count("the fifth") >= 2  # patience is there again
