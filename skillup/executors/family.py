"""The trials of one family: what they share is held once, then each goes on from its own fork."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import anyio
import anyio.to_thread

from skillup.engines.base import Availability, Engine, SessionResumer
from skillup.executors.attempts import (
    Again,
    AttemptsOf,
    another_attempt,
    hold_attempts,
    leave,
    with_note,
)
from skillup.executors.common_turns import Node, Span, node_of, owned
from skillup.executors.shared_costs import note_shared, shared_costs
from skillup.judges.settling import LiveJudge
from skillup.plan import Job
from skillup.schema.record import Record, TurnRecord
from skillup.store.scratch import remove_tree
from skillup.trial import TrialEvent, TrialRequest, hold_rest, record_without_turns
from skillup.trial.family import Shared, hold_shared
from skillup.trial.forking import forking_problem
from skillup.trial.opening import Opened


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


async def hold_family(holder: Holder, jobs: Sequence[Job], limiter: anyio.CapacityLimiter) -> None:
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
            await hold_attempts(holder, job, which.number, which.note, which.uncounted)


class _Attempt:
    """One attempt at trials that share turns; what has to be tried again is another one."""

    def __init__(self, holder: Holder, limiter: anyio.CapacityLimiter, which: _Which) -> None:
        self.holder = holder
        self.limiter = limiter
        self.which = which
        self._requests: dict[str, TrialRequest] = {}

    async def hold(self, root: Node) -> None:
        """Hold all jobs of the tree."""
        first = root.jobs[0]
        missing = forking_problem(first.profile.engine, self.holder.engines[first.profile.name][0])
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

    async def _hold_node(self, node: Node, fork: Opened | None, spans: list[Span]) -> None:
        """Hold the turns that the jobs of `node` share, then each part of it by itself."""
        again: Again | None = None
        forks: list[tuple[Node, Opened | Record]] = []
        async with self.limiter:
            if self.holder.is_enough():
                self._leave(node)
                return
            request = fork.request if fork is not None else self._shared_request(node)
            start = len(fork.held) if fork is not None else 0
            shared = await hold_shared(request, node.count, fork)
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

    async def _hold_part(self, node: Node, fork: Opened | Record, spans: list[Span]) -> None:
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

    async def _hold_leaf(self, node: Node, fork: Opened | Record, spans: list[Span]) -> None:
        job = node.jobs[0]
        async with self.limiter:
            if self.holder.is_enough():
                self._leave(node)
                return
            self.holder.observer.trial_started(job, self.which.number)
            record = fork if isinstance(fork, Record) else await hold_rest(fork)
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
            await hold_attempts(self.holder, job, number, note, again.uncounted)

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

    async def _hold_again(self, node: Node, again: Again) -> None:
        number = self.which.number
        note = f"attempt {number} ended in the shared turns ({again.reason}): they were held anew"
        which = _Which(number + 1, again.uncounted, note)
        # What is held anew is shared by these only.
        jobs = [replace(job, relatives=node.relatives) for job in node.jobs]
        await _hold(self.holder, jobs, self.limiter, which)

    async def _fork(self, shared: Shared, node: Node, child: Node) -> Opened | Record:
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

    def _leave(self, node: Node) -> None:
        for job in node.jobs:
            if job.id in self._requests:
                leave(self.holder, job)

    def _note_shared(self, node: Node, turns: Sequence[TurnRecord]) -> None:
        profile, jobs = node.jobs[0].profile.name, [job.id for job in node.jobs]
        costs = shared_costs(profile, jobs, turns)
        if costs is not None:
            note_shared(self.holder.directory, self.holder.stopping, costs)
            self.holder.options.turns_shared(costs)

    def _request(self, job: Job) -> TrialRequest:
        """The job's own; its directories are made when they are first needed."""
        if job.id not in self._requests:
            self._requests[job.id] = self.holder.request(job, self.which.number)
        return self._requests[job.id]

    def _shared_request(self, node: Node) -> TrialRequest:
        """For turns that are held in the first job's name, in a scratch of their own."""
        job, many = node.jobs[0], len(node.jobs)
        own = self._request(job)
        reader, notify = self.holder.options.reader, own.notify
        self.holder.observer.trial_started(job, self.which.number)

        def tell(event: TrialEvent) -> None:
            notify(replace(event, shared_by=many))

        scratch = own.scratch / f"shared-{node.count}"
        scratch.mkdir(mode=0o700)
        judge = LiveJudge(reader) if reader is not None else None
        return replace(own, scratch=scratch, judge=judge, notify=tell)

    def _remove_scratch(self, job: Job) -> None:
        if job.id in self._requests and not self.holder.options.keep_scratch:
            self.holder.directory.remove_scratch(job.id)


def _span(
    node: Node, start: int, shared: Shared, forks: Sequence[tuple[Node, Opened | Record]] = ()
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
    return request.patience is not None and request.patience.left
