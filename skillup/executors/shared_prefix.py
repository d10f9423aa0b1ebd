"""The trials of one family: what they share runs once, then each goes on from its own fork."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import anyio
import anyio.to_thread

from skillup.engines.base import SessionResumer
from skillup.executors.attempts import run_attempts
from skillup.executors.budgets import shared_costs
from skillup.executors.retries import Attempt, Retry, retry_of, with_note
from skillup.executors.run import Run
from skillup.plan import Job, Relative
from skillup.schema.grade import Judging
from skillup.schema.record import Record, joined
from skillup.store.scratch import remove_tree
from skillup.trial import TrialEvent, TrialRequest, record_without_turns, run_trial
from skillup.trial.request import TrialResult
from skillup.trial.setup import OpenTrial
from skillup.trial.shared_prefix import SharedPrefix, fork_problem_of, run_shared_prefix

# Which trials of a family have which turns in common: a tree, forks where they part.


@dataclass(frozen=True, slots=True)
class PrefixNode:
    """Jobs that begin with the same `count` turns."""

    jobs: tuple[Job, ...]
    """Those that are to run."""
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
        running = {job.id for job in self.jobs}.difference(unable)
        for relative in self.relatives:
            if relative.id in running or turn in (relative.counts or ()):
                return relative.id
        return self.jobs[0].id


def node_of(jobs: Sequence[Job]) -> PrefixNode:
    """The tree of `jobs`, in their order. Those with nothing in common part at turn 0.

    Where relatives are known that have finished, the tree has forks where it had them with these,
    so that conversations and records come out as if all ran together.
    """
    running = {job.id: job for job in jobs}
    found = next((job.relatives for job in jobs if job.relatives), ())
    known = [one for one in found if one.id in running or one.counts is not None]
    return _node(known or [Relative(job.id, job.steps) for job in jobs], running)


def _node(family: Sequence[Relative], running: Mapping[str, Job]) -> PrefixNode:
    jobs = tuple(running[one.id] for one in family if one.id in running)
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
    children = [
        _node(part, running) for part in parts.values() if any(one.id in running for one in part)
    ]
    return PrefixNode(jobs, tuple(family), count, tuple(children))


def with_relatives(
    jobs: Iterable[Job], planned: Sequence[Job], counted: Mapping[str, Sequence[int]]
) -> list[Job]:
    """`jobs`, which are to run, each knowing those of its family that have finished.

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


def counted_turns(record: Record) -> list[int] | None:
    """The turns, from 1, that it counts and no other record; None if none ran at all.

    One that was skipped is nobody's: a relative that runs later may come to run it.
    """
    if all(turn.started_at is None for turn in record.turns):
        return None
    sent = (turn for turn in record.turns if turn.status != "skipped")
    return [turn.turn_number for turn in sent if turn.held_by is None]


@dataclass(frozen=True, slots=True)
class Span:
    """Turns that ran once for several records."""

    start: int
    """They are those after this one."""
    owners: tuple[str, ...]
    """For each of them, the job whose record counts it."""
    judging: Judging | None
    """What judges used over them while they ran."""


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
    alone += [root.jobs[0] for root in roots if not root.children]

    async def run_alone(job: Job) -> None:
        async with run.limiter:
            if not run.is_enough():
                run.observer.trial_started(job, attempt.number)
                await run_attempts(run, job, attempt)

    async with anyio.create_task_group() as group:
        for job in alone:
            group.start_soon(run_alone, job, name=job.id)
        for root in roots:
            if root.children:
                group.start_soon(_SharedAttempt(run, attempt).run_tree, root)


class _SharedAttempt:
    """One attempt at trials that share turns; what has to run again is another one."""

    def __init__(self, run: Run, attempt: Attempt) -> None:
        self.run = run
        self.attempt = attempt
        self._requests: dict[str, TrialRequest] = {}

    async def run_tree(self, root: PrefixNode) -> None:
        """Run all jobs of the tree."""
        profile = root.jobs[0].profile
        missing = fork_problem_of(profile.engine, self.run.engines[profile.name][0])
        try:
            if missing is None:
                await self._run_node(root, None, [])
                return
            for job in root.jobs:
                async with self.run.limiter:
                    record = record_without_turns(self._request(job), error=missing)
                    await self._conclude(job, record, [])
        finally:
            for job in root.jobs:
                self._remove_scratch(job)

    async def _run_node(
        self, node: PrefixNode, fork: OpenTrial | Record | None, spans: list[Span]
    ) -> None:
        """Run the turns that the jobs of `node` share, then each part of it by itself."""
        retry: Retry | None = None
        forks: list[tuple[PrefixNode, OpenTrial | Record]] = []
        async with self.run.limiter:
            if isinstance(fork, Record):
                outcomes = []
                for job in node.jobs:
                    record = record_without_turns(self._request(job), error=fork.error)
                    record = record.model_copy(update={"turns": fork.turns})
                    outcomes.append((job, TrialResult(record)))
                retry = await self._conclude_all(outcomes, spans)
            elif self.run.is_enough():
                self._leave(node)
                return
            else:
                request = self._shared_request(node) if fork is None else fork.request
                start = len(fork.done) if fork is not None else 0
                shared = await run_shared_prefix(request, node.count, fork)
                name, jobs = node.jobs[0].profile.name, [job.id for job in node.jobs]
                costs = shared_costs(name, jobs, shared.turns[start:])
                if costs is not None:
                    self.run.note_shared(costs)
                why = shared.interruption
                if why is not None and why.kind == "run_ended":
                    self._leave(node)
                    return
                if shared.ended:
                    outcomes = [
                        (job, TrialResult(await shared.record_of(self._request(job)), why))
                        for job in node.jobs
                    ]
                    spans = [*spans, _span(node, start, shared)]
                    retry = await self._conclude_all(outcomes, spans)
                else:
                    forks = [
                        (child, await self._fork(shared, node, child)) for child in node.children
                    ]
                    spans = [*spans, _span(node, start, shared, forks)]
                    if not self.run.options.keep_scratch:
                        await anyio.to_thread.run_sync(remove_tree, request.scratch)
        if retry is not None:
            why_again = f"ended in the shared turns ({retry.reason}): they ran again"
            note = f"attempt {self.attempt.number} {why_again}"
            # What runs again is shared by these only.
            again = [replace(job, relatives=node.relatives) for job in node.jobs]
            await run_family(self.run, again, replace(retry.attempt, note=note))
            return
        async with anyio.create_task_group() as group:
            for child, forked in forks:
                part = self._run_node if child.children else self._run_leaf
                group.start_soon(part, child, forked, spans, name=child.jobs[0].id)

    async def _run_leaf(
        self, node: PrefixNode, fork: OpenTrial | Record, spans: list[Span]
    ) -> None:
        run, job = self.run, node.jobs[0]
        async with run.limiter:
            if run.is_enough():
                self._leave(node)
                return
            run.observer.trial_started(job, self.attempt.number)
            if isinstance(fork, Record):
                outcome = TrialResult(fork)
            else:
                outcome = await run_trial(fork.request, fork)
            self._remove_scratch(job)
            why = outcome.interruption
            if why is not None and why.kind == "run_ended":
                self._leave(node)
                return
            retry = retry_of(outcome, job.loaded.case.retry_policy, self.attempt)
            if retry is None:
                await self._conclude(job, outcome.record, spans)
                return
            run.give_up(job, outcome.record, retry.reason)
            number = retry.attempt.number
            note = f"attempt {number} runs by itself: turns that other records share ran once more"
            await run_attempts(run, job, replace(retry.attempt, note=note))

    async def _conclude_all(
        self, outcomes: Sequence[tuple[Job, TrialResult]], spans: list[Span]
    ) -> Retry | None:
        """Conclude jobs that ended together; or say why they run again together."""
        first, outcome = outcomes[0]
        retry = retry_of(outcome, first.loaded.case.retry_policy, self.attempt)
        for job, ended in outcomes:
            if retry is None:
                await self._conclude(job, ended.record, spans)
            else:
                self.run.give_up(job, ended.record, retry.reason)
            self._remove_scratch(job)
        return retry

    async def _conclude(self, job: Job, record: Record, spans: list[Span]) -> None:
        await self.run.conclude(job, owned(with_note(record, self.attempt.note), job.id, spans))

    async def _fork(
        self, shared: SharedPrefix, node: PrefixNode, child: PrefixNode
    ) -> OpenTrial | Record:
        job = child.jobs[0]
        request = self._shared_request(child) if child.children else self._request(job)
        fork = await shared.fork(request)
        if isinstance(fork, OpenTrial):
            parent = node.relatives[0].id  # as if all ran together
            self.run.directory.journal(
                "trial_forked", job=job.id, parent=parent, after_turn=node.count
            )
        return fork

    def _leave(self, node: PrefixNode) -> None:
        for job in node.jobs:
            if job.id in self._requests:
                self.run.leave(job)

    def _request(self, job: Job) -> TrialRequest:
        """The job's own; its directories are made when they are first needed."""
        if job.id not in self._requests:
            self._requests[job.id] = self.run.request(job, self.attempt)
        return self._requests[job.id]

    def _shared_request(self, node: PrefixNode) -> TrialRequest:
        """For turns that run in the first job's name, in a scratch of their own."""
        job, many = node.jobs[0], len(node.jobs)
        own = self._request(job)
        self.run.observer.trial_started(job, self.attempt.number)

        def notify(event: TrialEvent) -> None:
            own.notify(replace(event, shared_by=many))

        scratch = own.scratch / f"shared-{node.count}"
        scratch.mkdir(mode=0o700)
        return replace(own, scratch=scratch, judge=self.run.turn_judge(), notify=notify)

    def _remove_scratch(self, job: Job) -> None:
        if job.id in self._requests and not self.run.options.keep_scratch:
            self.run.directory.remove_scratch(job.id)


def _span(
    node: PrefixNode,
    start: int,
    shared: SharedPrefix,
    forks: Sequence[tuple[PrefixNode, OpenTrial | Record]] = (),
) -> Span:
    """The turns after `start` that ran for `node`; a fork that failed may have none."""
    unable = {
        job.id
        for child, fork in forks
        if isinstance(fork, Record) and not fork.turns
        for job in child.jobs
    }
    owners = tuple(node.owner(turn, unable) for turn in range(start + 1, node.count + 1))
    return Span(start, owners, shared.judging)
