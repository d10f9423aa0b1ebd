"""Which trials share which turns, and whose record counts them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from skillup.executors.shared_prefix import (
    PrefixNode,
    Span,
    counted_turns,
    node_of,
    owned,
    with_relatives,
)
from skillup.schema.grade import Judging
from skillup.schema.record import TurnRecord
from tests.support.plans import jobs_of
from tests.support.records import make_record

CASE = """
input:
  turns:
    - one
    - content: two
      branches:
        - {name: a, turns: [{content: x, branches: [{name: p, turns: [y]}, {name: q, turns: [z]}]}]}
        - {name: b, turns: [x]}
    - three
assertions: [{contains: x}]
"""


def shape(node: PrefixNode) -> Any:
    """The tree with nothing but the numbers of shared turns, and the ids of its leaves."""
    if not node.children:
        return node.jobs[0].id
    return (node.count, *map(shape, node.children))


def test_paths_part_where_the_file_says(tmp_path: Path) -> None:
    tail = "p/with_skill/1"
    assert shape(node_of(jobs_of(tmp_path, CASE))) == (
        2,
        f"c/{tail}",
        (3, f"c/a/p/{tail}", f"c/a/q/{tail}"),
        f"c/b/{tail}",
    )


def test_trials_part_at_the_turn_that_was_asked_for(tmp_path: Path) -> None:
    jobs = jobs_of(tmp_path, "input: {turns: [a, b, c]}\n", trials=2, trials_from_turn=3)
    assert shape(node_of(jobs)) == (2, "c/p/with_skill/1", "c/p/with_skill/2")
    assert len({job.family for job in jobs}) == 1


def test_trials_of_branches_part_at_both(tmp_path: Path) -> None:
    jobs = jobs_of(tmp_path, CASE, trials=2, trials_from_turn=2)
    node = node_of(jobs)
    assert (node.count, [child.count for child in node.children]) == (1, [2, 2])
    assert [{job.trial for job in child.jobs} for child in node.children] == [{1}, {2}]


def test_without_anything_to_share_there_is_no_family(tmp_path: Path) -> None:
    jobs = jobs_of(tmp_path, "input: {turns: [a, b]}\n", trials=2, trials_from_turn=1)
    assert [job.family for job in jobs] == ["", ""]


def test_the_record_of_the_owner_counts_what_is_shared() -> None:
    turns = [TurnRecord(turn_number=n, status="completed", content="x") for n in (1, 2, 3)]
    record = make_record(*turns).record
    judging = Judging(calls=2, cached_calls=0, models=["m"], usage=None, cost_usd=None)
    span = Span(0, ("one", "one"), judging)
    second, first = (owned(record, job, [span]) for job in ("two", "one"))
    assert [turn.held_by for turn in first.turns] == [None, None, None]
    assert [turn.held_by for turn in second.turns] == ["one", "one", None]
    assert first.judging is not None
    assert (first.judging.calls, second.judging) == (2, None)


def test_the_rest_of_a_family_forks_where_all_of_it_does(tmp_path: Path) -> None:
    tail = "p/with_skill/1"
    jobs = jobs_of(tmp_path, CASE)
    counted = {f"c/{tail}": [1, 2, 3], f"c/a/p/{tail}": [3, 4]}
    rest = with_relatives([job for job in jobs if job.id not in counted], jobs, counted)
    node = node_of(rest)
    assert shape(node) == (2, (3, f"c/a/q/{tail}"), f"c/b/{tail}")
    assert [node.owner(1), node.children[0].owner(3)] == [f"c/{tail}", f"c/a/p/{tail}"]


def test_whoever_has_finished_with_turns_of_another_is_not_their_owner(tmp_path: Path) -> None:
    tail = "p/with_skill/1"
    jobs = jobs_of(tmp_path, CASE)
    node = node_of(with_relatives(jobs[:1], jobs, {f"c/b/{tail}": [3]}))
    assert node.owner(1) == f"c/{tail}"
    unable = node_of(jobs)
    assert unable.owner(1, {jobs[0].id}) == jobs[1].id


def test_turns_that_were_skipped_are_of_whoever_runs_them_later(tmp_path: Path) -> None:
    began = "2026-01-01T00:00:00.000Z"
    failed = TurnRecord(turn_number=1, status="failed", content="x", started_at=began)
    skipped = [TurnRecord(turn_number=n, status="skipped", content="x") for n in (2, 3)]
    record = make_record(failed, *skipped).record
    assert counted_turns(record) == [1]
    marked = owned(record, "two", [Span(0, ("one", "one"), None)])
    assert [turn.held_by for turn in marked.turns] == ["one", None, None]
    jobs = jobs_of(tmp_path, CASE)
    first, *others = jobs
    node = node_of(with_relatives(others, jobs, {first.id: [1]}))
    assert [node.owner(1), node.owner(2)] == [first.id, others[0].id]


def test_what_never_ran_is_no_relative(tmp_path: Path) -> None:
    skipped = make_record(TurnRecord(turn_number=1, status="skipped", content="x")).record
    assert counted_turns(skipped) is None
    jobs = jobs_of(tmp_path, CASE)
    assert with_relatives(jobs[1:], jobs, {}) == jobs[1:]
