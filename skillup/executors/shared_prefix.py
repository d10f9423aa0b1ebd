"""The trials of one family: what they share runs once, then each goes on from its own fork."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import anyio
import anyio.to_thread

from skillup.engines.base import SessionResumer
from skillup.executors.attempts import run_attempts
from skillup.executors.retries import Attempt, retry_of, with_note
from skillup.executors.run import Run
from skillup.plan import Job
from skillup.schema.record import Record
from skillup.store.scratch import remove_tree
from skillup.trial import TrialEvent, TrialRequest, record_without_turns
from skillup.trial.request import TrialResult
from skillup.trial.setup import OpenTrial
from skillup.trial.shared_prefix import SharedPrefix, fork_problem_of, run_shared_prefix


@dataclass(frozen=True, slots=True)
class PrefixNode:
    """Jobs that begin with the same `count` turns, which the record of the first of them counts."""

    jobs: tuple[Job, ...]
    count: int
    children: tuple[PrefixNode, ...]
    """Where they part; none if it is one job."""


def node_of(jobs: Sequence[Job]) -> PrefixNode:
    """The tree of `jobs`, in their order. Those with nothing in common part at turn 0."""
    first, count = jobs[0], 0
    if len(jobs) == 1:
        return PrefixNode((first,), len(first.steps), ())
    while all(job.steps[count : count + 1] == first.steps[count : count + 1] for job in jobs):
        if count == len(first.steps):
            break
        count += 1
    parts: dict[object, list[Job]] = {}
    for job in jobs:
        # Jobs that end here have nothing left to share.
        key = job.steps[count] if len(job.steps) > count else job.id
        parts.setdefault(key, []).append(job)
    return PrefixNode(tuple(jobs), count, tuple(map(node_of, parts.values())))


async def run_family(run: Run, jobs: Sequence[Job], attempt: Attempt | None = None) -> None:
    """Run and conclude `jobs`, all of one family, none of which waits for anything any more.

    Each takes a place of the run's limiter while it runs, and so do turns that several share.
    """
    attempt = attempt or Attempt()
    alone: list[Job] = []
    together: list[Job] = []
    for job in jobs:
        # What cannot run fails each by itself; a single shot, which the suite allows, has no forks.
        single_shot = job.suite.suite.on_no_resume == "single_shot" and not isinstance(
            run.engines[job.profile.name][0], SessionResumer
        )
        (alone if single_shot or run.problem(job) is not None else together).append(job)
    roots = [node_of(together)] if together else []
    if roots and not roots[0].count and roots[0].children:
        roots = list(roots[0].children)
    async with anyio.create_task_group() as group:
        for job in (*alone, *(root.jobs[0] for root in roots if not root.children)):
            group.start_soon(_run_alone, run, job, attempt, name=job.id)
        for root in roots:
            if root.children:
                group.start_soon(_SharedAttempt(run, attempt, root.jobs).run_tree, root)


async def _run_alone(
    run: Run, job: Job, attempt: Attempt, fork: OpenTrial | Record | None = None
) -> None:
    async with run.limiter:
        if not run.is_enough():
            run.observer.trial_started(job, attempt.number)
            await run_attempts(run, job, attempt, fork)
        elif fork is not None:
            run.leave(job)


class _SharedAttempt:
    """One attempt at trials that share turns; what has to run again is another one."""

    def __init__(self, run: Run, attempt: Attempt, jobs: Sequence[Job]) -> None:
        self.run = run
        self.attempt = attempt
        self._requests = {job.id: run.request(job, attempt) for job in jobs}

    async def run_tree(self, root: PrefixNode) -> None:
        """Run all jobs of the tree."""
        profile = root.jobs[0].profile
        missing = fork_problem_of(profile.engine, self.run.engines[profile.name][0])
        try:
            if missing is None:
                await self._run_node(root, None)
                return
            for job in root.jobs:
                record = record_without_turns(self._requests[job.id], error=missing)
                await self.run.conclude(job, with_note(record, self.attempt.note))
        finally:
            for job in root.jobs:
                self._remove_scratch(job)

    async def _run_node(self, node: PrefixNode, fork: OpenTrial | None) -> None:
        """Run the turns that the jobs of `node` share, then each part of it by itself."""
        retry: Attempt | None = None
        forks: list[tuple[PrefixNode, OpenTrial | Record]] = []
        async with self.run.limiter:
            if self.run.is_enough():
                self._leave(node)
                return
            request = fork.request if fork is not None else self._shared_request(node)
            shared = await run_shared_prefix(request, node.count, fork)
            live = shared.conversation
            interruption = live.interruption if live is not None else None
            if interruption is not None and interruption.kind == "run_ended":
                self._leave(node)
                return
            for child in () if shared.ended else node.children:
                forks += await self._fork(shared, node, child)
            for job in node.jobs if shared.ended else ():
                record = await shared.record_of(self._requests[job.id], _owner(node, job))
                retry = await self._end(job, TrialResult(record, interruption))
            if not self.run.options.keep_scratch:
                await anyio.to_thread.run_sync(remove_tree, request.scratch)
        if retry is not None:
            await run_family(self.run, node.jobs, retry)
            return
        async with anyio.create_task_group() as group:
            for child, forked in forks:
                job = child.jobs[0]
                if child.children and isinstance(forked, OpenTrial):
                    group.start_soon(self._run_node, child, forked, name=job.id)
                else:
                    group.start_soon(_run_alone, self.run, job, self.attempt, forked, name=job.id)

    async def _fork(
        self, shared: SharedPrefix, node: PrefixNode, child: PrefixNode
    ) -> list[tuple[PrefixNode, OpenTrial | Record]]:
        """The fork for `child`; if it failed, what came of each of its jobs."""
        job = child.jobs[0]
        request = self._shared_request(child) if child.children else self._requests[job.id]
        fork = await shared.fork(request, _owner(node, job))
        if isinstance(fork, OpenTrial):
            parent = node.jobs[0].id
            self.run.directory.journal(
                "trial_forked", job=job.id, parent=parent, after_turn=node.count
            )
            return [(child, fork)]
        return [
            (
                node_of([one]),
                await shared.record_of(self._requests[one.id], _owner(node, one), fork),
            )
            for one in child.jobs
        ]

    async def _end(self, job: Job, outcome: TrialResult) -> Attempt | None:
        """Conclude a job that ended in the shared turns; or how they run again."""
        retry = retry_of(outcome, job.loaded.case.retry_policy, self.attempt)
        if retry is None:
            await self.run.conclude(job, with_note(outcome.record, self.attempt.note))
            return None
        self.run.give_up(job, outcome.record, retry.reason)
        why = f"ended in the shared turns ({retry.reason}): they ran again"
        return replace(retry.attempt, note=f"attempt {self.attempt.number} {why}")

    def _leave(self, node: PrefixNode) -> None:
        for job in node.jobs:
            self.run.leave(job)

    def _shared_request(self, node: PrefixNode) -> TrialRequest:
        """For turns that run in the first job's name, in a scratch of their own."""
        job, many = node.jobs[0], len(node.jobs)
        own = self._requests[job.id]
        self.run.observer.trial_started(job, self.attempt.number)

        def notify(event: TrialEvent) -> None:
            own.notify(replace(event, shared_by=many))

        scratch = own.scratch / f"shared-{node.count}"
        scratch.mkdir(mode=0o700)
        return replace(own, scratch=scratch, judge=self.run.turn_judge(), notify=notify)

    def _remove_scratch(self, job: Job) -> None:
        if not self.run.options.keep_scratch:
            self.run.directory.remove_scratch(job.id)


def _owner(node: PrefixNode, job: Job) -> str | None:
    """Whose record counts the turns of `node`; None: that of `job`."""
    return node.jobs[0].id if job.id != node.jobs[0].id else None
