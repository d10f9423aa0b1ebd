"""Which trials begin next: as many at once as there are places, the best ones first."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence

import anyio

from skillup.plan import Job

Unit = tuple[Job, ...]
"""Jobs that begin together: one, or those of a family, which may share turns."""


class Scheduler:
    """Lets units begin: of the engine with the fewest running trials, the first trial of each case
    before the second, and then in the order of the plan.

    So an engine that is slow, or waits for its provider, does not take all places, and a budget
    that is spent early leaves every case with some of its trials instead of some cases with all.
    No place is left empty for any of that. Of a unit, the first trial that is still to be run
    counts.
    """

    def __init__(
        self,
        units: Sequence[Unit],
        order: Mapping[str, int],
        places: int,
        has_room: Callable[[int], bool] = lambda _: True,
    ) -> None:
        """`order` has the place in the plan by job id; what is not in `units` is done already.

        `has_room` is asked, with how many trials run, before one more begins beside them. If it
        says no, the next one waits until one of those has ended; the only one never waits.
        """
        self.places = places
        self._order, self._has_room = order, has_room
        self._changed, self._awaited = anyio.Event(), False
        depended = {name for unit in units for job in unit for name in job.depends_on}
        # What others wait for: of 100,000 trials most are waited for by none.
        depended = {job.id for unit in units for job in unit if job.id in depended}
        self._dependents: dict[str, list[Unit]] = {}
        self._missing: dict[str, set[str]] = {}
        """What units that have not begun wait for, by their first job."""
        self._queues: dict[str, list[tuple[int, int, Unit]]] = {}
        """By engine a heap of what could begin: trial, place in the plan, unit."""
        self._running: Counter[str] = Counter()  # Units, by engine
        self._begun: dict[str, Unit] = {}
        """By trial that has begun and not ended, its unit."""
        for unit in units:
            own = {job.id for job in unit}
            needed = {name for job in unit for name in job.depends_on} - own
            needed &= depended
            for name in needed:
                self._dependents.setdefault(name, []).append(unit)
            if needed:
                self._missing[unit[0].id] = needed
            else:
                self._enqueue(unit)

    @property
    def empty(self) -> bool:
        """Every unit has begun."""
        return not self._missing and not any(self._queues.values())

    def resize(self, places: int) -> None:
        """There are more places now, or fewer; whoever has one keeps it."""
        self.places = places
        self.notify()

    def notify(self) -> None:
        """Something has changed: another unit may be able to begin."""
        if self._awaited:
            self._changed.set()
            self._changed, self._awaited = anyio.Event(), False

    async def changed(self) -> None:
        self._awaited = True
        await self._changed.wait()

    def next(self) -> Unit | None:
        """A unit that begins now; None: nothing may. Its place is taken until it has ended."""
        running = self._running.total()
        if running >= self.places or (running and not self._has_room(len(self._begun))):
            return None
        waiting = {name: queue for name, queue in self._queues.items() if queue}
        if not waiting:
            return None
        engine = min(waiting, key=lambda name: (self._running[name], *waiting[name][0][:2]))
        *_, unit = heapq.heappop(waiting[engine])
        self._running[engine] += 1
        self._begun.update((job.id, unit) for job in unit)
        return unit

    def release(self, unit: Unit) -> None:
        """The unit has ended, or is not run any more."""
        for job in unit:
            self.finish(job.id)

    def finish(self, job_id: str) -> None:
        """A trial has ended; others of its unit may still run. What depends on it may begin."""
        unit = self._begun.pop(job_id, None)
        if unit is not None and not any(job.id in self._begun for job in unit):
            self._running[unit[0].profile.name] -= 1
        for unit in self._dependents.pop(job_id, ()):
            missing = self._missing[unit[0].id]
            missing.discard(job_id)
            if not missing:
                del self._missing[unit[0].id]
                self._enqueue(unit)
        self.notify()

    def _enqueue(self, unit: Unit) -> None:
        entry = min(job.trial for job in unit), self._order[unit[0].id], unit
        heapq.heappush(self._queues.setdefault(unit[0].profile.name, []), entry)


def units_of(jobs: Iterable[Job]) -> list[Unit]:
    """Jobs that may share turns, together; any other by itself; in their order."""
    found: dict[str, list[Job]] = {}
    for job in jobs:
        found.setdefault(job.family or job.id, []).append(job)
    return [tuple(unit) for unit in found.values()]
