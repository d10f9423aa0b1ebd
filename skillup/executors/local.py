"""Trials on this machine: a whole plan, or one at a time; families share their first turns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import takewhile
from typing import Any

import anyio.to_thread

from skillup.dataclass import frozen
from skillup.engines.base import SessionForker, SessionResumer
from skillup.engines.registry import remove_logins
from skillup.executors.retries import Attempt, retry_of, with_note
from skillup.executors.run import FinishedTrial, Run
from skillup.plan import Job
from skillup.process.tree import process_register
from skillup.schema.grade import Grade
from skillup.schema.record import Checkpoint, Record, TurnError
from skillup.store.scratch import remove_tree
from skillup.trial.request import TrialRequest, TrialResult
from skillup.trial.run import SharedPrefix, record_without_turns, run_shared_prefix, run_trial
from skillup.trial.setup import OpenTrial, resume_trial


async def run_locally(run: Run) -> None:
    """Run what has not finished; cancelling ends running trials, and leaves what has."""
    with process_register(run.options.register_dir, own_process=run.options.own_process):
        await run.check_engines()
        await run.take_over_finished()
        async with run.gateway():
            await run.run_all(partial(run_family, run))


class Stepwise:
    """What :func:`run_locally` does, one trial at a time; the caller has the process registered."""

    def __init__(self, run: Run) -> None:
        self._run, self.gateway, self.unmet = run, run.gateway, run.unmet
        self._jobs = {job.id: job for job in run.plan.jobs}
        self._broken: set[str] = set()
        self._one = anyio.Semaphore(1)

    async def open(self) -> None:
        """Look at what all trials need; once, before the first."""
        await self._run.check_engines()
        await self._run.take_over_finished()

    async def run(self, job: Job) -> Grade | None:
        """The trial's grade; it runs unless it has, after those it depends on. None: not run.

        Raises SkillupError where the run's directory fails.
        """
        async with self._one:
            await self._run_in_order(job)
        return self._run.directory.read_grade(job.id) if job.id in self._run.lines else None

    async def _run_in_order(self, job: Job) -> None:
        if job.id in self._run.lines or job.id in self._broken:
            return
        # Should it be broken off, it is not begun again, nor is what needs it.
        self._broken.add(job.id)
        needed = [name for name in job.depends_on if name in self._jobs]
        for name in needed:
            await self._run_in_order(self._jobs[name])
        if all(name in self._run.lines for name in needed):
            await self._run.run_unit([job], partial(run_family, self._run))

    @property
    def stopped(self) -> str | None:
        """Why no more trials run; None: they do."""
        reason = self._run.stopping.reason
        return reason.message if reason is not None else None


@frozen
class PrefixNode:
    """Jobs that begin with the same `count` turns, which the record of the first of them counts."""

    jobs: tuple[Job, ...]
    count: int
    children: tuple[PrefixNode, ...]  # Where they part; none if it is one job


def node_of(jobs: Sequence[Job]) -> PrefixNode:
    """The tree of `jobs`, in their order. Those with nothing in common part at turn 0."""
    if len(jobs) == 1:
        return PrefixNode((jobs[0],), len(jobs[0].steps), ())
    same = (len(set(turns)) == 1 for turns in zip(*(job.steps for job in jobs), strict=False))
    count = len(list(takewhile(bool, same)))
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
    if len(jobs) == 1:
        await _run_alone(run, jobs[0], attempt)
        return
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
    for job in together:
        if run.directory.was_begun(job.id):
            await run.directory.remove_scratch_beside(job.id)
    async with anyio.create_task_group() as group:
        for job in (*alone, *(root.jobs[0] for root in roots if not root.children)):
            group.start_soon(_run_alone, run, job, attempt, name=job.id)
        for root in roots:
            if root.children:
                group.start_soon(_SharedAttempt(run, attempt, root.jobs).run_tree, root)


async def _run_alone(
    run: Run, job: Job, attempt: Attempt, fork: OpenTrial | Record | None = None
) -> None:
    finished: FinishedTrial | None = None
    async with run.limiter:
        if not run.is_enough():
            run.observer.trial_started(job, attempt.number)
            finished = await run_attempts(run, job, attempt, fork)
        elif fork is not None:
            run.leave(job)
    if finished is not None:
        await run.report(finished)


class _SharedAttempt:
    """One attempt at trials that share turns; what has to run again is another one."""

    def __init__(self, run: Run, attempt: Attempt, jobs: Sequence[Job]) -> None:
        self.run, self.attempt = run, attempt
        self._requests = {job.id: run.request(job, attempt) for job in jobs}

    async def run_tree(self, root: PrefixNode) -> None:
        engine, here = self.run.engines[root.jobs[0].profile.name]
        try:
            if isinstance(engine, SessionForker) and here.can_fork is not False:
                await self._run_node(root, None)
                return
            needed_by = "which branches and --trials-from-turn need"
            fix = "use another engine with --engine, or select a single branch with -k"
            text = f"{engine.name} cannot fork a session, {needed_by}; {fix}"
            missing = TurnError(kind="unsupported", message=text)
            for job in root.jobs:
                record = record_without_turns(self._requests[job.id], error=missing)
                await self.run.conclude(job, with_note(record, self.attempt.note))
        finally:
            for job in root.jobs:
                if not self.run.options.keep_scratch:
                    await self.run.directory.remove_scratch_beside(job.id)

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
            about: dict[str, Any] = {"parent": node.jobs[0].id, "after_turn": node.count}
            self.run.directory.journal("trial_forked", job=job.id, **about)
            return [(child, fork)]
        made: list[tuple[PrefixNode, OpenTrial | Record]] = []
        for one in child.jobs:
            record = await shared.record_of(self._requests[one.id], _owner(node, one), fork)
            made.append((node_of([one]), record))
        return made

    async def _end(self, job: Job, outcome: TrialResult) -> Attempt | None:
        """Conclude a job that ended in the shared turns; or how they run again."""
        retry = retry_of(outcome, job.loaded.case.retry_policy, self.attempt)
        if retry is None:
            await self.run.conclude(job, with_note(outcome.record, self.attempt.note))
            return None
        reason, attempt = retry
        await self.run.give_up(job, outcome.record, reason)
        why = f"ended in the shared turns ({reason}): they ran again"
        return replace(attempt, note=f"attempt {self.attempt.number} {why}")

    def _leave(self, node: PrefixNode) -> None:
        for job in node.jobs:
            self.run.leave(job)

    def _shared_request(self, node: PrefixNode) -> TrialRequest:
        """For turns that run in the first job's name, in a scratch of their own."""
        own = self._requests[node.jobs[0].id]
        self.run.observer.trial_started(node.jobs[0], self.attempt.number)
        scratch = own.scratch / f"shared-{node.count}"
        scratch.mkdir(mode=0o700)
        return replace(own, scratch=scratch, judge=self.run.turn_judge())


def _owner(node: PrefixNode, job: Job) -> str | None:
    """Whose record counts the turns of `node`; None: that of `job`."""
    return node.jobs[0].id if job.id != node.jobs[0].id else None


# One trial by itself: from where an earlier start left it, as often as it has to run.


async def run_attempts(
    run: Run, job: Job, attempt: Attempt, fork: OpenTrial | Record | None = None
) -> FinishedTrial | None:
    """Run a trial by itself, as often as it has to be, from `attempt` on.

    It begins with its `fork` of shared turns, if there is one (a Record says why not), or where an
    earlier start of the run left it. If the run ends in its midst (a quota, Ctrl-C) it has no
    record, and its scratch stays, without logins, if it has a checkpoint.
    """
    problem = run.problem(job)
    opened = fork if isinstance(fork, OpenTrial) else None
    checkpoint = run.directory.read_checkpoint(job.id) if attempt.number == 1 else None
    if checkpoint is not None and problem is not None:
        set_aside_unused(run, job, checkpoint, problem.message)
    elif checkpoint is not None:
        found = await _resume(run, job, checkpoint)
        if isinstance(found, str):
            attempt = Attempt(note=found)
        else:
            opened, attempt = found, Attempt(checkpoint.record.attempt, checkpoint.uncounted)
    while True:
        request = opened.request if opened is not None else None
        if request is None and not isinstance(fork, Record):
            if run.directory.was_begun(job.id):  # not where others wait for it
                await run.directory.remove_scratch_beside(job.id)
            request = run.request(job, attempt)
        outcome: TrialResult | None = None
        ended = False
        try:
            if request is None:
                assert isinstance(fork, Record)
                outcome = TrialResult(fork)
            elif problem is not None:
                outcome = TrialResult(record_without_turns(request, error=problem))
            else:
                outcome = await run_trial(request, opened)
            why = outcome.interruption
            ended = why is not None and why.kind == "run_ended"
        finally:
            left = outcome is None or ended  # in its midst: it may go on from its checkpoint
            if left and request and run.directory.read_checkpoint(job.id) is not None:
                remove_logins(request.scratch / "home")
            elif not run.options.keep_scratch:
                await run.directory.remove_scratch_beside(job.id)
        if ended:
            run.leave(job)
            return None
        record = with_note(outcome.record, attempt.note)
        retry = retry_of(outcome, job.loaded.case.retry_policy, attempt)
        if retry is None:
            return await run.store(job, record)
        reason, attempt = retry
        await run.give_up(job, record, reason)
        if fork is not None:
            note = "runs by itself: turns that other records share ran once more"
            attempt = replace(attempt, note=f"attempt {attempt.number} {note}")
        opened = fork = None
        run.observer.trial_started(job, attempt.number)


async def _resume(run: Run, job: Job, checkpoint: Checkpoint) -> OpenTrial | str:
    """The trial as an earlier start of the run left it; a text says why it has to begin anew."""
    place = run.directory.reopen_trial(job.id)
    opened: OpenTrial | str = "its scratch directory is gone"
    if place is not None:
        attempt = Attempt(checkpoint.record.attempt, checkpoint.uncounted)
        opened = await resume_trial(run.request(job, attempt, place), checkpoint)
    if isinstance(opened, OpenTrial):
        turns = len(checkpoint.record.turns)
        run.directory.journal("trial_continued", job=job.id, after_turn=turns)
        return opened
    return set_aside_unused(run, job, checkpoint, opened)


def set_aside_unused(run: Run, job: Job, checkpoint: Checkpoint, why: str) -> str:
    """The trial begins anew, because of `why`; what its record is to say of that."""
    turns = len(checkpoint.record.turns)
    run.directory.journal("trial_not_continued", job=job.id, after_turn=turns, reason=why)
    run.directory.write_record(job.id, checkpoint.record, state="unused")
    run.stopping.count(checkpoint.record, None)
    return f"begun anew with turn 1, not resumed after turn {turns}: {why}"
