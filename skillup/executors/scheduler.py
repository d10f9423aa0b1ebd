"""Which trials begin next: as many at once as there are places, the best ones first."""

from __future__ import annotations

import heapq
import traceback
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import anyio
import anyio.lowlevel

from skillup.errors import SkillupError
from skillup.executors.options import RunObserver
from skillup.plan import Job
from skillup.schema.grade import Grade
from skillup.schema.record import Record
from skillup.trial import TrialEvent

Group = tuple[str, ...]


@dataclass(slots=True)
class _Waiting:
    """Jobs, one or a family, that could begin."""

    jobs: Sequence[Job]
    admitted: anyio.Event = field(default_factory=anyio.Event)
    gone: bool = False
    """Whoever asked does not wait any longer."""


class Scheduler:
    """Lets jobs begin: of the engine with the fewest running trials, of its cases the one with the
    fewest, of those the first trial before the second, and then in the order of the plan. Of a
    family it is the first trial that is still to be held that counts.

    So an engine that is slow, or waits for its provider, does not take all places, and a budget
    that is spent early leaves every case with some of its trials instead of some cases with all.
    A case with the skill and the same without it are two here. No place is left empty for any of
    that.
    """

    def __init__(
        self,
        places: int,
        *,
        has_room: Callable[[int], bool] = lambda _: True,
    ) -> None:
        """`has_room` is asked, with how many trials run, before one more begins beside them.

        If it says no, the next one waits until one of those has ended; the only one never waits.
        """
        self.places = places
        self._has_room = has_room
        self._order: dict[str, int] = {}
        self._waiting: dict[Group, list[tuple[int, int, int, _Waiting]]] = {}
        """By trial and place in the plan: the rest of a family that a resumed run has still to hold
        may begin with a path that comes after all others."""
        self._best: dict[str, list[tuple[int, int, int, Group]]] = {}
        """By engine, a heap of its waiting groups: by running trials, then as their first job. What
        has changed since is put right when it comes to the top."""
        self._running: Counter[Group] = Counter()
        self._unfinished: set[str] = set()

    def expect(self, jobs: Iterable[Job]) -> None:
        """The jobs of the plan, in its order."""
        self._order = {job.id: place for place, job in enumerate(jobs)}

    def resize(self, places: int) -> None:
        """There are more places now, or fewer; whoever has one keeps it."""
        self.places = places
        self._let_in()

    @asynccontextmanager
    async def place(self, jobs: Sequence[Job]) -> AsyncIterator[None]:
        """Wait for a place for `jobs`, one or a family; it is given up at the end."""
        waiting = _Waiting(jobs)
        group = self._group(jobs[0])
        first = min(job.trial for job in jobs)
        entry = (first, self._order.get(jobs[0].id, 0), id(waiting), waiting)
        heapq.heappush(self._waiting.setdefault(group, []), entry)
        self._rank(group)
        try:
            # Others that wait for a place since this very moment may be better.
            await anyio.lowlevel.checkpoint()
            self._let_in()
            await waiting.admitted.wait()
            yield
        finally:
            waiting.gone = True
            if waiting.admitted.is_set():
                self._running[group] -= 1
                if not self._running[group]:
                    del self._running[group]
                self._rank(group)
                self._unfinished.difference_update(job.id for job in jobs)
            self._let_in()

    def ended(self, job: Job) -> None:
        """A trial has ended; others of its family may still run."""
        self._unfinished.discard(job.id)
        self._let_in()

    def _group(self, job: Job) -> Group:
        return (job.profile.name, str(job.suite.path), job.loaded.family, job.variant)

    def _let_in(self) -> None:
        while self._running.total() < self.places:
            if self._running.total() and not self._has_room(len(self._unfinished)):
                return
            group = self._next_group()
            if group is None:
                return
            *_, waiting = heapq.heappop(self._waiting[group])
            self._running[group] += 1
            self._rank(group)
            self._unfinished.update(job.id for job in waiting.jobs)
            waiting.admitted.set()

    def _next_group(self) -> Group | None:
        """Whose first job begins next; None: nothing waits."""
        engines: Counter[str] = Counter()
        for (engine, *_), running in self._running.items():
            engines[engine] += running
        best: list[tuple[int, int, int, int, Group]] = []
        for engine, heap in list(self._best.items()):
            while heap and self._rank_of(heap[0][-1]) != heap[0]:
                *_, group = heapq.heappop(heap)
                self._rank(group)
            if heap:
                best.append((engines[engine], *heap[0]))
            else:
                del self._best[engine]
        return min(best)[-1] if best else None

    def _rank(self, group: Group) -> None:
        """Have a group be found by what it is now."""
        rank = self._rank_of(group)
        if rank is not None:
            heapq.heappush(self._best.setdefault(group[0], []), rank)

    def _rank_of(self, group: Group) -> tuple[int, int, int, Group] | None:
        queue = self._waiting.get(group, [])
        while queue and queue[0][-1].gone:
            heapq.heappop(queue)
        if not queue:
            self._waiting.pop(group, None)
            return None
        trial, order, *_ = queue[0]
        return self._running[group], trial, order, group


# Whoever watches a run may fail: then the run ends in order, and no trial answers for it.


class SafeObserver:
    """Passes on what happens to `observer`, until that fails once; `end` is called then.

    `end` has to end the run, and :meth:`refuse` to be called once it has ended.
    """

    def __init__(self, observer: RunObserver, end: Callable[[], None]) -> None:
        self._observer = observer
        self._end = end
        self._failure: BaseException | None = None

    def refuse(self) -> None:
        """Raises SkillupError, which says where and why, if the observer has failed."""
        if self._failure is not None:
            raise _error_of(self._failure) from self._failure

    def trial_started(self, job: Job, attempt: int) -> None:
        """See :class:`RunObserver`."""
        self._tell(self._observer.trial_started, job, attempt)

    def trial_event(self, event: TrialEvent) -> None:
        """See :class:`RunObserver`."""
        self._tell(self._observer.trial_event, event)

    def trial_finished(self, job: Job, record: Record, grade: Grade) -> None:
        """See :class:`RunObserver`."""
        self._tell(self._observer.trial_finished, job, record, grade)

    def trial_retried(self, job: Job, record: Record, reason: str) -> None:
        """See :class:`RunObserver`."""
        self._tell(self._observer.trial_retried, job, record, reason)

    def trial_lost(self, job: Job, worker: str, reason: str) -> None:
        """See :class:`RunObserver`."""
        self._tell(self._observer.trial_lost, job, worker, reason)

    def _tell(self, method: Callable[..., None], *about: Any) -> None:
        if self._failure is not None:
            return
        try:
            method(*about)
        # Whatever it is; a console of rich's leaves by SystemExit when nobody reads it.
        except (Exception, SystemExit) as failure:  # noqa: BLE001
            self._failure = failure
            self._end()


def _error_of(failure: BaseException) -> SkillupError:
    frames = traceback.extract_tb(failure.__traceback__)
    where = f" ({frames[-1].filename}:{frames[-1].lineno}, in {frames[-1].name})" if frames else ""
    what = f"{type(failure).__name__}: {failure}".rstrip(": ")
    return SkillupError(
        f"the run was ended, because what shows it failed: {what}{where}",
        hint="finished trials are kept; go on with --resume",
    )
