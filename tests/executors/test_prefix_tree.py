"""Which trials share which turns."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from skillup.executors.shared_prefix import PrefixNode, node_of
from tests.support.plans import jobs_of

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
