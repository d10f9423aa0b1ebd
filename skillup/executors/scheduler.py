"""Which trials begin next, as many at once as there are places; and which of them run again."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import anyio

from skillup.frozen import frozen
from skillup.plan import Job, Plan
from skillup.schema.case import RetryPolicy
from skillup.schema.grade import Grade
from skillup.schema.record import Record
from skillup.store import RunDirectory
from skillup.trial.request import TrialResult

MOST_RESTARTS = 5
"""So often a trial begins anew because of refusals: every attempt asks its earlier turns again."""
COMES_BACK = frozenset({"template", "no_resume"})
"""Errors that lie in the case itself: `--retry-errors` leaves them; others may have been mended."""
# What comes back every time within a run: trying again only costs.
_NEVER = COMES_BACK | {"unsupported", "engine_not_found", "setup", "internal", "quota"}

Group = tuple[str, str, str, str]
Unit = tuple[Job, ...]
"""Jobs that begin together: one, or those of a family, which may share turns."""


class Scheduler:
    """Lets units begin: of the engine with the fewest running trials, of its cases the one with the
    fewest, of those the first trial before the second, and then in the order of the plan.

    So a slow engine does not take all places, and a budget that is spent early leaves every case
    with some of its trials. A case without the skill is one of its own here.
    """

    def __init__(
        self,
        units: Sequence[Unit],
        order: Mapping[str, int],
        places: int,
        has_room: Callable[[int], bool] = lambda _: True,
    ) -> None:
        """`order` has the place in the plan by job id; what is not in `units` is done already.

        `has_room` says whether one more may begin beside so many; the only one never waits.
        """
        self.places = places
        self._order, self._has_room = order, has_room
        self._changed = anyio.Event()
        self._open = {job.id for unit in units for job in unit}
        self._dependents: dict[str, list[Unit]] = {}
        self._missing: dict[str, set[str]] = {}
        """What units that have not begun wait for, by their first job."""
        self._queues: dict[Group, list[tuple[int, int, Unit]]] = {}
        """What could begin, by trial and place in the plan."""
        self._best: dict[str, list[tuple[int, int, int, Group]]] = {}
        """By engine, a heap of groups: running trials, then their first unit. An entry that does
        not say how its group is now is dropped when it comes to the top."""
        self._running: Counter[Group] = Counter()
        self._trials: set[str] = set()
        for unit in units:
            own = {job.id for job in unit}
            needed = {name for job in unit for name in job.depends_on} & self._open - own
            self._missing[unit[0].id] = needed
            for name in needed:
                self._dependents.setdefault(name, []).append(unit)
            if not needed:
                self._enqueue(unit)

    @property
    def empty(self) -> bool:
        """Every unit has begun."""
        return not self._missing

    def resize(self, places: int) -> None:
        """There are more places now, or fewer; whoever has one keeps it."""
        self.places = places
        self.notify()

    def notify(self) -> None:
        """Something has changed: another unit may be able to begin."""
        self._changed.set()
        self._changed = anyio.Event()

    async def changed(self) -> None:
        """Wait for the next change."""
        await self._changed.wait()

    def next(self) -> Unit | None:
        """A unit that begins now; None: nothing may. Its place is taken until `release`."""
        running = self._running.total()
        if running >= self.places or (running and not self._has_room(len(self._trials))):
            return None
        engines: Counter[str] = Counter()
        for (engine, *_), count in self._running.items():
            engines[engine] += count
        best: list[tuple[int, int, int, int, Group]] = []
        for engine, heap in self._best.items():
            while heap and heap[0] != self._rank(heap[0][-1]):
                heapq.heappop(heap)
            if heap:
                best.append((engines[engine], *heap[0]))
        if not best:
            return None
        group = min(best)[-1]
        *_, unit = heapq.heappop(self._queues[group])
        del self._missing[unit[0].id]
        self._running[group] += 1
        self._push(group)
        self._trials.update(job.id for job in unit)
        return unit

    def release(self, unit: Unit) -> None:
        """The unit has ended, or is not run any more."""
        group = _group(unit)
        self._running[group] -= 1
        if not self._running[group]:
            del self._running[group]
        self._push(group)
        for job in unit:
            self.finish(job.id)

    def finish(self, job_id: str) -> None:
        """A trial has ended; others of its unit may still run. What depends on it may begin."""
        self._trials.discard(job_id)
        if job_id in self._open:
            self._open.discard(job_id)
            for unit in self._dependents.pop(job_id, ()):
                missing = self._missing[unit[0].id]
                missing.discard(job_id)
                if not missing:
                    self._enqueue(unit)
        self.notify()

    def _enqueue(self, unit: Unit) -> None:
        entry = min(job.trial for job in unit), self._order[unit[0].id], unit
        heapq.heappush(self._queues.setdefault(_group(unit), []), entry)
        self._push(_group(unit))

    def _push(self, group: Group) -> None:
        rank = self._rank(group)
        if rank is not None:
            heapq.heappush(self._best.setdefault(group[0], []), rank)

    def _rank(self, group: Group) -> tuple[int, int, int, Group] | None:
        queue = self._queues.get(group)
        return (self._running[group], *queue[0][:2], group) if queue else None


def _group(unit: Unit) -> Group:
    job = unit[0]
    return job.profile.name, str(job.suite.path), job.loaded.family, job.variant


def units_of(jobs: Iterable[Job]) -> list[Unit]:
    """Jobs that may share turns, together; any other by itself; in their order."""
    found: dict[str, list[Job]] = {}
    for job in jobs:
        found.setdefault(job.family or job.id, []).append(job)
    return [tuple(unit) for unit in found.values()]


# An attempt at a trial, and whether there is another one.


@frozen
class Attempt:
    """Which attempt at a trial it is."""

    number: int = 1
    uncounted: int = 0
    """So many of those before it does `retry_policy` not count: the provider refused them."""
    note: str | None = None  # What the record says of it


def retry_of(
    outcome: TrialResult, policy: RetryPolicy | None, attempt: Attempt
) -> tuple[str, Attempt] | None:
    """The next attempt, and why: an error's kind or `turn_precondition_fail`; None: no more.

    The policy allows ``max_retries`` beyond the first, and beyond those that were refused.
    """
    record, interruption, number = outcome.record, outcome.interruption, attempt.number
    error, uncounted = record.first_error(), attempt.uncounted
    restart = interruption is not None and interruption.kind == "restart"
    if restart and error is not None and uncounted < MOST_RESTARTS:
        assert interruption is not None
        why = f"was refused by the provider and could not go on: {interruption.reason}"
        again = Attempt(number + 1, uncounted + 1, f"attempt {number} {why}")
        return error.kind, again
    if policy is None or record.skipped is not None or number - uncounted > policy.max_retries:
        return None
    kinds, gate = set(policy.retry_on), "turn_precondition_fail"
    if error is not None:
        retried = error.kind in kinds or ("error" in kinds and error.kind not in _NEVER)
    else:
        gate_failed = any(turn.post_condition_passed is False for turn in record.turns)
        retried = gate_failed and gate in kinds
    reason = error.kind if error is not None else gate
    return (reason, Attempt(number + 1, uncounted, attempt.note)) if retried else None


def with_note(record: Record, note: str | None) -> Record:
    """`record` with one note more."""
    return record if note is None else record.model_copy(update={"notes": [*record.notes, note]})


# `--retry-errors`: which finished trials of a run run again, or are only judged again.


@dataclass(slots=True)
class RetryErrors:
    """What is to become of the trials of a run that met an error."""

    rerun: dict[str, str] = field(default_factory=dict)  # Run again: the error's kind, by job
    waiting: list[str] = field(default_factory=list)
    """Skipped, since what they depend on is among those; each after what it depends on."""
    judged: list[str] = field(default_factory=list)
    """Run whole, so that only judges have to be asked again."""
    left: dict[str, str] = field(default_factory=dict)
    """Left as they are, since their error would come back: its kind, by job."""

    def jobs(self) -> set[str]:
        """Those that have no record any more once :func:`take_back` is done."""
        return {*self.rerun, *self.waiting}


def trials_to_retry(plan: Plan, directory: RunDirectory) -> RetryErrors:
    """Look through what has finished of `plan`; nothing is changed."""
    found = RetryErrors()
    for job in plan.jobs:
        grade = directory.read_grade(job.id)
        if grade is not None and grade.status in ("PASS", "FAIL"):
            continue
        record = directory.finished_record(job.id)
        if record is None:
            continue
        error = record.first_error()
        if error is not None:
            (found.left if error.kind in COMES_BACK else found.rerun)[job.id] = error.kind
        elif record.skipped is not None:
            again = {*found.rerun, *found.waiting, *found.judged}
            if not again.isdisjoint(job.depends_on):
                found.waiting.append(job.id)
        elif grade is not None and grade.status == "ERROR":
            found.judged.append(job.id)
    return found


def take_back(found: RetryErrors, directory: RunDirectory) -> None:
    """Make those unfinished that run again; their records stay, as attempts."""
    if not (found.rerun or found.waiting or found.judged):
        return
    directory.journal(
        "errors_retried",
        durable=True,
        held_again=list(found.rerun),
        skipped_before=found.waiting,
        judged_again=found.judged,
    )
    # Those that wait come first: killed in between, none keeps a reason that holds no longer.
    for job_id in [*reversed(found.waiting), *found.rerun]:
        directory.take_back(job_id)


def worth_retrying(grades: Iterable[Grade]) -> int:
    """How many trials met an error that `--retry-errors` would look into."""
    kinds = [(grade.error or {}).get("kind") for grade in grades if grade.status == "ERROR"]
    return sum(kind not in COMES_BACK for kind in kinds)
