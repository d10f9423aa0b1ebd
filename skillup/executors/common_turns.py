"""Which trials of a family have which turns in common: a tree, forks where they part."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from skillup.judges.ledger import joined
from skillup.plan import Job, Relative
from skillup.schema.grade import Judging
from skillup.schema.record import Record


@dataclass(frozen=True, slots=True)
class Node:
    """Jobs that begin with the same `count` turns."""

    jobs: tuple[Job, ...]
    """Those that are to be held."""
    relatives: tuple[Relative, ...]
    """Those, and others that an earlier start of the run has finished, in the plan's order."""
    count: int
    children: tuple[Node, ...]
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


def node_of(jobs: Sequence[Job]) -> Node:
    """The tree of `jobs`, in their order. Those with nothing in common part at turn 0.

    Where relatives are known that have finished, the tree has forks where it had them with these,
    so that conversations and records come out as if all were held together.
    """
    held = {job.id: job for job in jobs}
    found = next((job.relatives for job in jobs if job.relatives), ())
    known = [one for one in found if one.id in held or one.counts is not None]
    return _node(known or [Relative(job.id, job.steps) for job in jobs], held)


def _node(family: Sequence[Relative], held: Mapping[str, Job]) -> Node:
    jobs = tuple(held[one.id] for one in family if one.id in held)
    if len(family) == 1:
        return Node(jobs, tuple(family), len(family[0].steps), ())
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
    return Node(jobs, tuple(family), count, tuple(_node(part, held) for part in wanted))


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
