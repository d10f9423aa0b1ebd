"""The trials of one family: what they share is held once, then each goes on from its own fork."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import anyio
import anyio.to_thread
from pydantic import ValidationError

from skillup.engines.base import Availability, Engine, SessionResumer
from skillup.executors.attempts import (
    Again,
    AttemptsOf,
    another_attempt,
    leave,
    run_attempts,
    with_note,
)
from skillup.executors.budgets import StopPolicy
from skillup.judges.evaluate import TurnJudge
from skillup.plan import Job, Relative
from skillup.schema.grade import Judging
from skillup.schema.record import Record, TurnRecord, joined
from skillup.store import RunDirectory
from skillup.store.scratch import remove_tree
from skillup.trial import TrialEvent, TrialRequest, record_without_turns, run_rest
from skillup.trial.setup import Opened
from skillup.trial.shared_prefix import SharedPrefix, fork_problem_of, run_shared_prefix

# Which trials of a family have which turns in common: a tree, forks where they part.


@dataclass(frozen=True, slots=True)
class PrefixNode:
    """Jobs that begin with the same `count` turns."""

    jobs: tuple[Job, ...]
    """Those that are to be held."""
    relatives: tuple[Relative, ...]
    """Those, and others that an earlier start of the run has finished, in the plan's order."""
    count: int
    children: tuple[PrefixNode, ...]
    """Where they part; none if it is one job."""

    def owner(self, turn: int, unable: Collection[str] = ()) -> str:
        """The job whose record counts a turn (from 1) that all of them share.

        It is the first in the plan's order whose record has the turn or will have it, whoever ends
        first: so it is the same one when a run that was killed goes on. Those of `unable` will not
        have it.
        """
        held = {job.id for job in self.jobs}.difference(unable)
        for relative in self.relatives:
            if relative.id in held or turn in (relative.counts or ()):
                return relative.id
        return self.jobs[0].id


def node_of(jobs: Sequence[Job]) -> PrefixNode:
    """The tree of `jobs`, in their order. Those with nothing in common part at turn 0.

    Where relatives are known that have finished, the tree has forks where it had them with these,
    so that conversations and records come out as if all were held together.
    """
    held = {job.id: job for job in jobs}
    found = next((job.relatives for job in jobs if job.relatives), ())
    known = [one for one in found if one.id in held or one.counts is not None]
    return _node(known or [Relative(job.id, job.steps) for job in jobs], held)


def _node(family: Sequence[Relative], held: Mapping[str, Job]) -> PrefixNode:
    jobs = tuple(held[one.id] for one in family if one.id in held)
    if len(family) == 1:
        return PrefixNode(jobs, tuple(family), len(family[0].steps), ())
    count = 0
    while all(len(one.steps) > count for one in family):
        if len({one.steps[count] for one in family}) > 1:
            break
        count += 1
    parts: dict[object, list[Relative]] = {}
    for one in family:
        # Jobs that end here have nothing left to share.
        key = one.steps[count] if len(one.steps) > count else one.id
        parts.setdefault(key, []).append(one)
    wanted = [part for part in parts.values() if any(one.id in held for one in part)]
    return PrefixNode(jobs, tuple(family), count, tuple(_node(part, held) for part in wanted))


def with_relatives(
    jobs: Iterable[Job], planned: Sequence[Job], counted: Mapping[str, Sequence[int]]
) -> list[Job]:
    """`jobs`, which are to be held, each knowing those of its family that have finished.

    `planned` are the jobs of the plan, in its order; `counted` has, by job, what
    :func:`counted_turns` says of its record.
    """
    families: dict[str, list[Relative]] = {}
    for job in planned:
        if job.family:
            turns = tuple(counted[job.id]) if job.id in counted else None
            families.setdefault(job.family, []).append(Relative(job.id, job.steps, turns))
    known = {
        family: tuple(relatives)
        for family, relatives in families.items()
        if any(one.counts is not None for one in relatives)
    }
    return [
        replace(job, relatives=known[job.family]) if job.family in known else job for job in jobs
    ]


def without_finished(
    jobs: Sequence[Job], finished: Mapping[str, Sequence[int] | None]
) -> list[Job]:
    """Those of `jobs`, which are of one family, that are still to be held.

    `finished` has, by job, what :func:`counted_turns` says of its record.
    """
    if not finished:
        return list(jobs)
    family = jobs[0].relatives or tuple(Relative(job.id, job.steps) for job in jobs)
    counted = {name: tuple(turns) for name, turns in finished.items() if turns is not None}
    known = tuple(
        replace(one, counts=counted[one.id]) if one.id in counted else one for one in family
    )
    return [replace(job, relatives=known) for job in jobs if job.id not in finished]


def counted_turns(record: Record) -> list[int] | None:
    """The turns, from 1, that it counts and no other record; None if none was held at all.

    One that was skipped is nobody's: a relative that is held later may come to hold it.
    """
    if all(turn.started_at is None for turn in record.turns):
        return None
    held = (turn for turn in record.turns if turn.status != "skipped")
    return [turn.turn_number for turn in held if turn.held_by is None]


@dataclass(frozen=True, slots=True)
class Span:
    """Turns that were held once for several records."""

    start: int
    """They are those after this one."""
    owners: tuple[str, ...]
    """For each of them, the job whose record counts it."""
    judging: Judging | None
    """What judges took over them while they were held."""


def owned(record: Record, job_id: str, spans: Sequence[Span]) -> Record:
    """`record` as it is kept: what another record counts is marked `held_by` its job."""
    turns = list(record.turns)
    judging = record.judging
    for span in spans:
        if job_id in span.owners:
            judging = joined(span.judging, judging)
        for number, owner in enumerate(span.owners, start=span.start):
            if owner != job_id and number < len(turns) and turns[number].status != "skipped":
                turns[number] = turns[number].model_copy(update={"held_by": owner})
    return record.model_copy(update={"turns": turns, "judging": judging})


# What shared turns took, noted in the journal: they count even if no trial with them ever ends.

_EVENT = "turns_shared"
_KEPT = {"turn_number", "status", "session_id", "started_at", "usage", "cost_usd", "simulator"}


def shared_costs(
    profile: str, jobs: Iterable[str], turns: Sequence[TurnRecord]
) -> dict[str, Any] | None:
    """What `turns` took, which were held for `jobs` on the engine of `profile`, as JSON-like data.

    What judges took for their gates counts with the record that has it. None: nothing was held.
    """
    # A turn is known again, in a record, by its session.
    told = [_told(turn) for turn in turns if turn.session_id is not None]
    return {"jobs": list(jobs), "profile": profile, "turns": told} if told else None


def note_shared(directory: RunDirectory, stopping: StopPolicy, costs: Mapping[str, Any]) -> None:
    """It counts now. Raises KeyError or ValueError if :func:`shared_costs` did not make it."""
    turns = [_turn(turn) for turn in costs["turns"]]
    directory.journal(
        _EVENT, durable=True, jobs=costs["jobs"], profile=costs["profile"], turns=costs["turns"]
    )
    stopping.count_shared(costs["profile"], turns)


def count_noted(events: Iterable[Mapping[str, Any]], stopping: StopPolicy) -> None:
    """What earlier starts of the run have noted counts; what a record has too, counts once."""
    for event in events:
        if event.get("event") != _EVENT:
            continue
        try:
            turns = [_turn(turn) for turn in event["turns"]]
        except (KeyError, TypeError, ValidationError):
            continue
        stopping.count_shared(str(event.get("profile")), turns)


def _told(turn: TurnRecord) -> dict[str, Any]:
    told = turn.model_dump(mode="json", include=_KEPT)
    return told | {"follow_ups": [_told(one) for one in turn.follow_ups]}


def _turn(told: Mapping[str, Any]) -> TurnRecord:
    """What was said is in the records."""
    follow_ups = [_turn(one) for one in told["follow_ups"]]
    return TurnRecord.model_validate({**told, "content": "", "follow_ups": follow_ups})


class Holder(AttemptsOf, Protocol):
    """The run, as far as a family needs it."""

    engines: dict[str, tuple[Engine, Availability]]

    def is_enough(self) -> bool:
        """No more trials are to be started."""
        ...


@dataclass(frozen=True, slots=True)
class _Which:
    """Which attempt at trials it is."""

    number: int = 1
    uncounted: int = 0
    """So many of those before it does `retry_policy` not count."""
    note: str | None = None
    """What the records say of it."""


async def run_family(holder: Holder, jobs: Sequence[Job], limiter: anyio.CapacityLimiter) -> None:
    """Hold and conclude `jobs`, all of one family, none of which waits for anything any more.

    Each takes a place of `limiter` while it is held, and so do turns that are held for several.
    """
    await _hold(holder, jobs, limiter, _Which())


async def _hold(
    holder: Holder, jobs: Sequence[Job], limiter: anyio.CapacityLimiter, which: _Which
) -> None:
    alone: list[Job] = []
    together: list[Job] = []
    for job in jobs:
        (alone if _goes_alone(holder, job) else together).append(job)
    roots = [node_of(together)] if together else []
    if roots and not roots[0].count and roots[0].children:
        roots = list(roots[0].children)
    async with anyio.create_task_group() as group:
        for job in alone:
            group.start_soon(_hold_alone, holder, job, limiter, which, name=job.id)
        for root in roots:
            if not root.children:
                only = root.jobs[0]
                group.start_soon(_hold_alone, holder, only, limiter, which, name=only.id)
            else:
                group.start_soon(_Attempt(holder, limiter, which).hold, root)


def _goes_alone(holder: Holder, job: Job) -> bool:
    """What cannot be held is told of each; a single shot, which the suite allows, has no forks."""
    if holder.problem(job) is not None:
        return True
    single_shot = job.suite.suite.on_no_resume == "single_shot"
    return single_shot and not isinstance(holder.engines[job.profile.name][0], SessionResumer)


async def _hold_alone(
    holder: Holder, job: Job, limiter: anyio.CapacityLimiter, which: _Which
) -> None:
    async with limiter:
        if not holder.is_enough():
            holder.observer.trial_started(job, which.number)
            await run_attempts(holder, job, which.number, which.note, which.uncounted)


class _Attempt:
    """One attempt at trials that share turns; what has to be tried again is another one."""

    def __init__(self, holder: Holder, limiter: anyio.CapacityLimiter, which: _Which) -> None:
        self.holder = holder
        self.limiter = limiter
        self.which = which
        self._requests: dict[str, TrialRequest] = {}

    async def hold(self, root: PrefixNode) -> None:
        """Hold all jobs of the tree."""
        first = root.jobs[0]
        missing = fork_problem_of(first.profile.engine, self.holder.engines[first.profile.name][0])
        try:
            if missing is None:
                await self._hold_node(root, None, [])
                return
            for job in root.jobs:
                async with self.limiter:
                    record = record_without_turns(self._request(job), error=missing)
                    await self._conclude(job, record, [])
        finally:
            for job in root.jobs:
                self._remove_scratch(job)

    async def _hold_node(self, node: PrefixNode, fork: Opened | None, spans: list[Span]) -> None:
        """Hold the turns that the jobs of `node` share, then each part of it by itself."""
        again: Again | None = None
        forks: list[tuple[PrefixNode, Opened | Record]] = []
        async with self.limiter:
            if self.holder.is_enough():
                self._leave(node)
                return
            request = fork.request if fork is not None else self._shared_request(node)
            start = len(fork.held) if fork is not None else 0
            shared = await run_shared_prefix(request, node.count, fork)
            self._note_shared(node, shared.turns[start:])
            if _was_left(request):
                self._leave(node)
                return
            if shared.ended:
                ends = [(job, await shared.record_of(self._request(job))) for job in node.jobs]
                spans = [*spans, _span(node, start, shared)]
                again = await self._conclude_all(ends, spans)
            else:
                forks = [(c, await self._fork(shared, node, c)) for c in node.children]
                spans = [*spans, _span(node, start, shared, forks)]
                if not self.holder.options.keep_scratch:
                    await anyio.to_thread.run_sync(remove_tree, request.scratch)
        if again is not None:
            await self._hold_again(node, again)
            return
        async with anyio.create_task_group() as group:
            for child, forked in forks:
                hold = self._hold_part if child.children else self._hold_leaf
                group.start_soon(hold, child, forked, spans, name=child.jobs[0].id)

    async def _hold_part(self, node: PrefixNode, fork: Opened | Record, spans: list[Span]) -> None:
        if isinstance(fork, Opened):
            await self._hold_node(node, fork, spans)
            return
        records: list[tuple[Job, Record]] = []
        for job in node.jobs:
            record = record_without_turns(self._request(job), error=fork.error)
            records.append((job, record.model_copy(update={"turns": fork.turns})))
        async with self.limiter:
            again = await self._conclude_all(records, spans)
        if again is not None:
            await self._hold_again(node, again)

    async def _hold_leaf(self, node: PrefixNode, fork: Opened | Record, spans: list[Span]) -> None:
        job = node.jobs[0]
        async with self.limiter:
            if self.holder.is_enough():
                self._leave(node)
                return
            self.holder.observer.trial_started(job, self.which.number)
            record = fork if isinstance(fork, Record) else await run_rest(fork)
            self._remove_scratch(job)
            if not isinstance(fork, Record) and _was_left(fork.request):
                self._leave(node)
                return
            again = self._another(job, record)
            if again is None:
                await self._conclude(job, record, spans)
                return
            self.holder.give_up(job, record, again.reason)
            number = self.which.number + 1
            note = (
                f"attempt {number} is held by itself: turns that other records share were held "
                "once more"
            )
            await run_attempts(self.holder, job, number, note, again.uncounted)

    async def _conclude_all(
        self, records: Sequence[tuple[Job, Record]], spans: list[Span]
    ) -> Again | None:
        """Conclude jobs that ended together; or say why they are held again together."""
        again = self._another(*records[0])
        for job, record in records:
            if again is None:
                await self._conclude(job, record, spans)
            else:
                self.holder.give_up(job, record, again.reason)
            self._remove_scratch(job)
        return again

    def _another(self, job: Job, record: Record) -> Again | None:
        return another_attempt(self._request(job), record, self.which.uncounted)

    async def _hold_again(self, node: PrefixNode, again: Again) -> None:
        number = self.which.number
        note = f"attempt {number} ended in the shared turns ({again.reason}): they were held anew"
        which = _Which(number + 1, again.uncounted, note)
        # What is held anew is shared by these only.
        jobs = [replace(job, relatives=node.relatives) for job in node.jobs]
        await _hold(self.holder, jobs, self.limiter, which)

    async def _fork(
        self, shared: SharedPrefix, node: PrefixNode, child: PrefixNode
    ) -> Opened | Record:
        job = child.jobs[0]
        request = self._shared_request(child) if child.children else self._request(job)
        fork = await shared.fork(request)
        if isinstance(fork, Opened):
            parent = node.relatives[0].id  # as if all were held together
            self.holder.directory.journal(
                "trial_forked", job=job.id, parent=parent, after_turn=node.count
            )
        return fork

    async def _conclude(self, job: Job, record: Record, spans: list[Span]) -> None:
        await self.holder.conclude(job, owned(with_note(record, self.which.note), job.id, spans))

    def _leave(self, node: PrefixNode) -> None:
        for job in node.jobs:
            if job.id in self._requests:
                leave(self.holder, job)

    def _note_shared(self, node: PrefixNode, turns: Sequence[TurnRecord]) -> None:
        profile, jobs = node.jobs[0].profile.name, [job.id for job in node.jobs]
        costs = shared_costs(profile, jobs, turns)
        if costs is not None:
            note_shared(self.holder.directory, self.holder.stopping, costs)

    def _request(self, job: Job) -> TrialRequest:
        """The job's own; its directories are made when they are first needed."""
        if job.id not in self._requests:
            self._requests[job.id] = self.holder.request(job, self.which.number)
        return self._requests[job.id]

    def _shared_request(self, node: PrefixNode) -> TrialRequest:
        """For turns that are held in the first job's name, in a scratch of their own."""
        job, many = node.jobs[0], len(node.jobs)
        own = self._request(job)
        reader, notify = self.holder.options.reader, own.notify
        self.holder.observer.trial_started(job, self.which.number)

        def tell(event: TrialEvent) -> None:
            notify(replace(event, shared_by=many))

        scratch = own.scratch / f"shared-{node.count}"
        scratch.mkdir(mode=0o700)
        judge = TurnJudge(reader) if reader is not None else None
        return replace(own, scratch=scratch, judge=judge, notify=tell)

    def _remove_scratch(self, job: Job) -> None:
        if job.id in self._requests and not self.holder.options.keep_scratch:
            self.holder.directory.remove_scratch(job.id)


def _span(
    node: PrefixNode,
    start: int,
    shared: SharedPrefix,
    forks: Sequence[tuple[PrefixNode, Opened | Record]] = (),
) -> Span:
    """The turns after `start` that were held for `node`; a fork that failed may have none."""
    unable = {
        job.id
        for child, fork in forks
        if isinstance(fork, Record) and not fork.turns
        for job in child.jobs
    }
    owners = tuple(node.owner(turn, unable) for turn in range(start + 1, node.count + 1))
    return Span(start, owners, shared.judging)


def _was_left(request: TrialRequest) -> bool:
    """Whether the run ended in the midst of its conversation: then there is no record of it."""
    return request.throttle is not None and request.throttle.left
