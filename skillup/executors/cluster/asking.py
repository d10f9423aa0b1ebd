"""What a unit asks the client of its run: may a message be sent, and what about a refusal?

Trials on all workers share the providers, so one place decides for them: the client, as it would if
they were held there. A question goes out as a line of JSON on stdout, its answer comes in on stdin.
"""

from __future__ import annotations

import itertools
import json
import os
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from typing import Any, Literal, cast

import anyio
from anyio.from_thread import BlockingPortal

from skillup.plan import Job
from skillup.ratelimit.slow_down import (
    Kind,
    Passage,
    account_of_agent,
    account_of_model,
)
from skillup.schema.profile import Profile
from skillup.schema.record import TurnError


def lines_of(descriptor: int) -> Iterator[bytes]:
    """The lines that come there, without their ends, until it is closed.

    Not by way of `sys.stdin`: a thread that waits there holds a lock that Python wants at its end.
    """
    rest = b""
    while chunk := os.read(descriptor, 1 << 16):
        *whole, rest = (rest + chunk).split(b"\n")
        yield from whole


class ClientRequests:
    """The questions of one unit."""

    def __init__(self, say: Callable[[dict[str, Any]], None], answers: Iterator[bytes]) -> None:
        """`say` writes a line for the client; its answers are lines in `answers`."""
        self._say = say
        self._answers = answers
        self._numbers = itertools.count(1)
        self._waiting: dict[int, anyio.Event] = {}
        self._given: dict[int, Any] = {}

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[None]:
        """Meanwhile answers are taken in; must be left before the event loop is."""
        async with BlockingPortal() as portal:

            def listen() -> None:
                for line in self._answers:
                    try:
                        portal.call(self._take, line)
                    except RuntimeError:
                        return  # nobody waits for answers any more

            threading.Thread(target=listen, daemon=True).start()
            yield

    def patience(self, job: Job, attempt: int) -> RemotePatience:
        """Of an attempt at a trial; what it wants to know is asked here."""
        return RemotePatience(self, job.id, attempt)

    def tell(self, what: str, **about: Any) -> int:
        """Say something that needs no answer; its number."""
        number = next(self._numbers)
        self._say({"event": "asked", "number": number, "what": what, **about})
        return number

    async def ask(self, what: str, **about: Any) -> Any:
        """Ask something, and wait for its answer."""
        answered = anyio.Event()
        number = self.tell(what, **about)
        self._waiting[number] = answered
        try:
            await answered.wait()
            return self._given.pop(number)
        except anyio.get_cancelled_exc_class():
            # Else it would be waited for there, and others behind it.
            self.tell("withdrawn", of=number, **about)
            raise
        finally:
            del self._waiting[number]

    def _take(self, line: bytes) -> None:
        answer = json.loads(line)
        waiting = self._waiting.get(answer["number"])
        if waiting is not None:  # else the trial has been cancelled meanwhile
            self._given[answer["number"]] = answer["given"]
            waiting.set()


class RemotePatience:
    """:class:`skillup.trial.request.Patience`, which the client has."""

    def __init__(self, asking: ClientRequests, job: str, attempt: int) -> None:
        self.left = False
        self.anew: str | None = None
        self._asking = asking
        self._of = {"job": job, "attempt": attempt}

    async def ready(self) -> float | None:
        waited = cast("float | None", await self._asking.ask("ready", **self._of))
        self.left = waited is None
        return waited

    async def refused(self, error: TurnError, times: int) -> Literal["again", "error", "leave"]:
        said = error.model_dump(mode="json")
        answer = await self._asking.ask("refused", **self._of, error=said, times=times)
        self.left = answer == "leave"
        return cast('Literal["again", "error", "leave"]', answer)

    def not_again(self, why: str) -> None:
        self.anew = why

    def accepted(self) -> None:
        self._asking.tell("accepted", **self._of)


class RemotePacing:
    """`Pacing` for judges and simulated users; a unit has one."""

    def __init__(self, asking: ClientRequests, run_id: str, patience_seconds: float) -> None:
        self.patience_seconds = patience_seconds
        self._asking = asking
        self._run_id = run_id
        self._numbers = itertools.count(1)

    def of_model(self, base_url: str, key: str | None) -> Passage:
        # Of the key only what tells it from others is said, and in another run that is different.
        return self._passage("model", account_of_model(f"{self._run_id}\n{base_url}", key))

    def of_agent(self, profile: Profile) -> Passage:
        return self._passage("agent", account_of_agent(profile))

    def _passage(self, kind: Kind, account: str) -> Passage:
        return _AskedPassage(self._asking, kind, account, next(self._numbers))


class _AskedPassage:
    def __init__(self, asking: ClientRequests, kind: Kind, account: str, number: int) -> None:
        self._asking = asking
        self._of = {"kind": kind, "account": account, "passage": number}

    async def ready(self) -> bool:
        return cast("bool", await self._asking.ask("passage_ready", **self._of))

    async def refused(self, error: TurnError) -> str | None:
        said = error.model_dump(mode="json")
        answer = await self._asking.ask("passage_refused", **self._of, error=said)
        return cast("str | None", answer)

    async def accepted(self) -> None:
        self._asking.tell("passage_accepted", **self._of)
