"""The trials of one family: what they share is held once, then each goes on from its own fork."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

import anyio
import anyio.to_thread

from skillup.engines.base import Availability, Engine, SessionResumer
from skillup.executors.common_turns import Node, Span, node_of, owned
from skillup.executors.options import RunObserver, RunOptions
from skillup.executors.pace import MOST_ANEW
from skillup.executors.retry import retry_reason
from skillup.judges.settling import LiveJudge
from skillup.plan import Job
from skillup.schema.record import Record, TurnError
from skillup.store import RunDirectory
from skillup.store.scratch import remove_tree
from skillup.trial import TrialEvent, TrialRequest, hold_rest, record_without_turns
from skillup.trial.family import Shared, hold_shared
from skillup.trial.forking import forking_problem
from skillup.trial.opening import Opened


class Holder(Protocol):
    """The run, as far as a family needs it."""

    directory: RunDirectory
    options: RunOptions
    observer: RunObserver
    engines: dict[str, tuple[Engine, Availability]]

    def is_enough(self) -> bool:
        """No more trials are to be started."""
        ...

    def request(self, job: Job, attempt: int) -> TrialRequest:
        """Begins an attempt: its directories are made anew."""
        ...

    def problem(self, job: Job) -> TurnError | None:
        """What keeps the trial from being held, or from being judged once it was."""
        ...

    async def attempts(self, job: Job, first: int = 1, note: str | None = None) -> None:
        """Holds a trial by itself, as often as it has to be; the record says `note`."""
        ...

    def give_up(self, job: Job, record: Record, reason: str) -> None:
        """Keeps the record of an attempt; the trial is tried again."""
        ...

    async def conclude(self, job: Job, record: Record) -> None:
        """Keeps the record, and judges it."""
        ...


async def hold_family(holder: Holder, jobs: Sequence[Job], limiter: anyio.CapacityLimiter) -> None:
    """Hold and conclude `jobs`, all of one family, none of which waits for anything any more.

    Each takes a place of `limiter` while it is held, and so do turns that are held for several.
    """
    await _hold(holder, jobs, limiter, 1, None)


async def _hold(
    holder: Holder,
    jobs: Sequence[Job],
    limiter: anyio.CapacityLimiter,
    attempt: int,
    note: str | None,
) -> None:
    together = [job for job in jobs if not _goes_alone(holder, job)]
    alone = [job for job in jobs if job not in together]
    roots = [node_of(together)] if together else []
    if roots and not roots[0].count and roots[0].children:
        roots = list(roots[0].children)
    async with anyio.create_task_group() as group:
        for job in alone:
            group.start_soon(_hold_alone, holder, job, limiter, attempt, note, name=job.id)
        for root in roots:
            if len(root.jobs) == 1:
                only = root.jobs[0]
                group.start_soon(_hold_alone, holder, only, limiter, attempt, note, name=only.id)
            else:
                group.start_soon(_Attempt(holder, limiter, attempt, note).hold, root)


def _goes_alone(holder: Holder, job: Job) -> bool:
    """What cannot be held is told of each; a single shot, which the suite allows, has no forks."""
    if holder.problem(job) is not None:
        return True
    single_shot = job.suite.suite.on_no_resume == "single_shot"
    return single_shot and not isinstance(holder.engines[job.profile.name][0], SessionResumer)


async def _hold_alone(
    holder: Holder, job: Job, limiter: anyio.CapacityLimiter, attempt: int, note: str | None
) -> None:
    async with limiter:
        if not holder.is_enough():
            holder.observer.trial_started(job, attempt)
            await holder.attempts(job, attempt, note)


class _Attempt:
    """One attempt at trials that share turns; what has to be tried again is another one."""

    def __init__(
        self, holder: Holder, limiter: anyio.CapacityLimiter, attempt: int, note: str | None
    ) -> None:
        self.holder = holder
        self.limiter = limiter
        self.attempt = attempt
        self.note = note
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
        again: str | None = None
        forks: list[tuple[Node, Opened | Record]] = []
        async with self.limiter:
            if self.holder.is_enough():
                return
            request = fork.request if fork is not None else self._shared_request(node)
            start = len(fork.held) if fork is not None else 0
            shared = await hold_shared(request, node.count, fork)
            if _was_left(request):
                return
            spans = [*spans, Span(start, node.count, shared.judging)]
            if shared.ended:
                ends = [(job, await shared.record_of(self._request(job))) for job in node.jobs]
                again = await self._conclude_all(ends, spans, _refused(request, ends[0][1]))
            else:
                forks = [(c, await self._fork(shared, node, c)) for c in node.children]
                if not self.holder.options.keep_scratch:
                    await anyio.to_thread.run_sync(remove_tree, request.scratch)
        if again is not None:
            await self._hold_again(node, again)
            return
        async with anyio.create_task_group() as group:
            for child, forked in forks:
                hold = self._hold_leaf if len(child.jobs) == 1 else self._hold_part
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
                return
            self.holder.observer.trial_started(job, self.attempt)
            record = fork if isinstance(fork, Record) else await hold_rest(fork)
            self._remove_scratch(job)
            if not isinstance(fork, Record) and _was_left(fork.request):
                return
            refused = None if isinstance(fork, Record) else _refused(fork.request, record)
            reason = refused or retry_reason(record, job.loaded.case.retry_policy)
            if reason is None:
                await self._conclude(job, record, spans)
                return
            self._give_up(job, record, reason)
            note = (
                f"attempt {self.attempt + 1} is held by itself: turns that other records share "
                "were held once more"
            )
            await self.holder.attempts(job, self.attempt + 1, note)

    async def _conclude_all(
        self, records: Sequence[tuple[Job, Record]], spans: list[Span], refused: str | None = None
    ) -> str | None:
        """Conclude jobs that ended together; or say why they are held again together.

        `refused` says that the provider did, and that only another attempt can go on.
        """
        first, record = records[0]
        reason = refused or retry_reason(record, first.loaded.case.retry_policy)
        for job, record in records:
            if reason is None:
                await self._conclude(job, record, spans)
            else:
                self._give_up(job, record, reason)
            self._remove_scratch(job)
        return reason

    async def _hold_again(self, node: Node, reason: str) -> None:
        note = f"attempt {self.attempt} ended in the shared turns ({reason}): they were held anew"
        await _hold(self.holder, node.jobs, self.limiter, self.attempt + 1, note)

    async def _fork(self, shared: Shared, node: Node, child: Node) -> Opened | Record:
        job = child.jobs[0]
        request = self._request(job) if len(child.jobs) == 1 else self._shared_request(child)
        fork = await shared.fork(request)
        if isinstance(fork, Opened):
            parent = node.jobs[0].id
            self.holder.directory.journal(
                "trial_forked", job=job.id, parent=parent, after_turn=node.count
            )
        return fork

    async def _conclude(self, job: Job, record: Record, spans: list[Span]) -> None:
        await self.holder.conclude(job, owned(with_note(record, self.note), job.id, spans))

    def _request(self, job: Job) -> TrialRequest:
        """The job's own; its directories are made when they are first needed."""
        if job.id not in self._requests:
            self._requests[job.id] = self.holder.request(job, self.attempt)
        return self._requests[job.id]

    def _shared_request(self, node: Node) -> TrialRequest:
        """For turns that are held in the first job's name, in a scratch of their own."""
        job, many = node.jobs[0], len(node.jobs)
        own = self._request(job)
        reader, notify = self.holder.options.reader, own.notify
        self.holder.observer.trial_started(job, self.attempt)

        def tell(event: TrialEvent) -> None:
            notify(replace(event, shared_by=many))

        scratch = own.scratch / f"shared-{node.count}"
        scratch.mkdir(mode=0o700)
        judge = LiveJudge(reader) if reader is not None else None
        return replace(own, scratch=scratch, judge=judge, notify=tell)

    def _give_up(self, job: Job, record: Record, reason: str) -> None:
        """This attempt's record is kept, and the trial is tried again."""
        self.holder.give_up(job, record, reason)

    def _remove_scratch(self, job: Job) -> None:
        if job.id in self._requests and not self.holder.options.keep_scratch:
            self.holder.directory.remove_scratch(job.id)


def _was_left(request: TrialRequest) -> bool:
    """Whether the run ended in the midst of its conversation: then there is no record of it."""
    return request.patience is not None and request.patience.left


def _refused(request: TrialRequest, record: Record) -> str | None:
    """The refusal after which the trial can only go on in another attempt; None: there is none."""
    error = record.first_error()
    if request.patience is None or request.patience.anew is None or error is None:
        return None
    if request.attempt > MOST_ANEW:
        return None
    return error.kind


def with_note(record: Record, note: str | None) -> Record:
    """`record` with one note more."""
    return record if note is None else record.model_copy(update={"notes": [*record.notes, note]})
