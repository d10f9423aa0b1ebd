"""Which trials of a family have which turns in common: a tree, forks where they part."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from skillup.judges.ledger import joined
from skillup.plan import Job
from skillup.schema.grade import Judging
from skillup.schema.record import Record


@dataclass(frozen=True, slots=True)
class Node:
    """Jobs that begin with the same `count` turns."""

    jobs: tuple[Job, ...]
    count: int
    children: tuple[Node, ...]
    """Where they part; none if it is one job."""


def node_of(jobs: Sequence[Job]) -> Node:
    """The tree of `jobs`, in their order. Those with nothing in common part at turn 0."""
    if len(jobs) == 1:
        return Node(tuple(jobs), len(jobs[0].steps), ())
    count = 0
    while all(len(job.steps) > count for job in jobs):
        if len({job.steps[count] for job in jobs}) > 1:
            break
        count += 1
    parts: dict[object, list[Job]] = {}
    for job in jobs:
        # Jobs that end here have nothing left to share.
        key = job.steps[count] if len(job.steps) > count else job.id
        parts.setdefault(key, []).append(job)
    return Node(tuple(jobs), count, tuple(node_of(part) for part in parts.values()))


@dataclass(slots=True)
class Span:
    """Turns that were held once for several records."""

    start: int
    end: int
    """Turns `start` + 1 to `end`."""
    judging: Judging | None
    """What judges took over them while they were held."""
    owner: str | None = None
    """The job whose record counts them: the first one that was concluded with them."""


def owned(record: Record, job_id: str, spans: Sequence[Span]) -> Record:
    """`record` as it is kept: what another record counts already is marked `held_by` its job.

    To be called when nothing can come between it and the writing of the record.
    """
    turns = list(record.turns)
    judging = record.judging
    for span in spans:
        if span.owner in (None, job_id):
            span.owner = job_id
            judging = joined(span.judging, judging)
            continue
        for number in range(span.start, min(span.end, len(turns))):
            turns[number] = turns[number].model_copy(update={"held_by": span.owner})
    return record.model_copy(update={"turns": turns, "judging": judging})
