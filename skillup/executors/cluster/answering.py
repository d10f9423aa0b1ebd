"""What the client answers a unit that asks: see :mod:`skillup.executors.cluster.asking`."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any

import anyio
from anyio.abc import TaskGroup

from skillup.executors.run import Run
from skillup.plan import Job
from skillup.ratelimit.slow_down import Passage
from skillup.schema.record import TurnError
from skillup.trial.request import Patience


class Answering:
    """The questions of one unit, answered by the run that all units belong to."""

    def __init__(
        self,
        run: Run,
        jobs: Mapping[str, Job],
        group: TaskGroup,
        bring: Callable[[str], Awaitable[None]],
        settled: Callable[[], Awaitable[None]],
    ) -> None:
        """`bring` takes a line to the unit; `settled` waits for its trials that have finished."""
        self._run = run
        self._jobs = jobs
        self._group = group
        self._bring = bring
        self._settled = settled
        self._patiences: dict[tuple[str, int], Patience] = {}
        self._passages: dict[int, Passage] = {}
        self._beginning: set[str] = set()
        self._open: dict[int, anyio.CancelScope] = {}
        """By number, the questions that wait for their answer."""

    def begins(self, job: str) -> None:
        """Its next message is only sent if no limit of the run keeps the trial from being begun."""
        self._beginning.add(job)

    def asked(self, message: Mapping[str, Any]) -> None:
        """Answer it, when that is known. Raises KeyError or ValueError if it is no word of ours."""
        if message["what"] == "withdrawn":
            self._passages.pop(message.get("passage", 0), None)
            scope = self._open.pop(message["of"], None)
            if scope is not None:
                scope.cancel()
        elif "passage" in message:
            self._asked_by_others(message)
        else:
            self._asked_by_trial(message)

    def _asked_by_trial(self, message: Mapping[str, Any]) -> None:
        patience = self._patience(message["job"], message["attempt"])
        if message["what"] == "accepted":
            patience.accepted()
        elif message["what"] == "ready":
            self._answer(message, partial(self._ready, message["job"], patience))
        elif message["what"] == "refused":
            error = TurnError.model_validate(message["error"])
            self._answer(message, partial(patience.refused, error, message["times"]))

    async def _ready(self, job: str, patience: Patience) -> float | None:
        if job in self._beginning:
            # What those before it took, or that they failed, may be enough.
            await self._settled()
            if self._run.is_enough():
                return None
            self._beginning.discard(job)
        return await patience.ready()

    def _asked_by_others(self, message: Mapping[str, Any]) -> None:
        """Who judges, or plays the user."""
        number = message["passage"]
        if number not in self._passages:
            paces = self._run.options.paces
            self._passages[number] = paces.passage(message["kind"], message["account"])
        passage = self._passages[number]
        if message["what"] == "passage_accepted":
            del self._passages[number]
            self._group.start_soon(passage.accepted)
        elif message["what"] == "passage_ready":
            self._answer(message, passage.ready)
        elif message["what"] == "passage_refused":
            error = TurnError.model_validate(message["error"])
            self._answer(message, partial(passage.refused, error))

    def _patience(self, job: str, attempt: int) -> Patience:
        key = (job, attempt)
        if key not in self._patiences:
            self._patiences[key] = self._run.patience(self._jobs[job], attempt)
        return self._patiences[key]

    def _answer(self, message: Mapping[str, Any], find_out: Callable[[], Awaitable[Any]]) -> None:
        number = message["number"]
        scope = self._open[number] = anyio.CancelScope()

        async def answer() -> None:
            with scope:
                given = await find_out()
                self._open.pop(number, None)
                await self._bring(json.dumps({"number": number, "given": given}))

        self._group.start_soon(answer)
