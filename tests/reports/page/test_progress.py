"""What the journal says of a run: what is being held, and what was forked from what."""

from __future__ import annotations

from pathlib import Path
from typing import cast

from skillup.reports.html.page_data import Row
from skillup.reports.html.rows import ForkTrees
from skillup.reports.html.run_files import Fork, progress_of, turn_under_way
from tests.support.trees import make_tree


def test_what_was_begun_and_is_not_over_is_running() -> None:
    events = [
        {"event": "run_created", "time": "1"},
        {"event": "trial_started", "job": "a", "time": "2"},
        {"event": "trial_started", "job": "b"},
        {"event": "trial_finished", "job": "a"},
    ]
    found = progress_of(events)
    assert found.started == {"b"}
    assert progress_of([*events, {"event": "trial_left", "job": "b"}]).started == set()
    assert progress_of([*events, {"event": "trial_continued", "job": "c"}]).started == {"b", "c"}
    assert (found.first_time, found.last_time, found.ended) == ("1", "2", False)
    assert progress_of([*events, {"event": "result_written"}]).ended
    again = progress_of([*events, {"event": "result_written"}, {"event": "run_reopened"}])
    assert again.started == set()
    assert not again.ended


def test_odd_events_are_passed_over() -> None:
    odd: list[dict[str, object]] = [
        {},
        {"event": 1, "job": ["a"]},
        {"event": "trial_forked", "job": "a"},
        {"event": "trial_forked", "job": "a", "parent": 1, "after_turn": "x"},
        {"event": "trial_started"},
        {"event": "of a later version", "job": "a", "time": 5},
    ]
    found = progress_of(odd)
    assert (found.started, found.forks) == (set(), {})


def test_a_trial_that_is_held_again_is_forked_no_more() -> None:
    fork = {"event": "trial_forked", "job": "b", "parent": "a", "after_turn": 2}
    retry = {"event": "trial_retried", "job": "b"}
    assert progress_of([fork]).forks == {"b": Fork("a", 2)}
    assert progress_of([fork, retry]).forks == {}
    assert progress_of([fork, retry, {**fork, "after_turn": 1}]).forks == {"b": Fork("a", 1)}


def test_the_turn_under_way_is_the_newest_with_a_stream(tmp_path: Path) -> None:
    assert turn_under_way(tmp_path / "nowhere") is None
    make_tree(tmp_path, {"turn-01.stdout.jsonl": "", "turn-02-follow-up-1.stderr.txt": "", "x": ""})
    assert turn_under_way(tmp_path) == 2


def _row(job: str, n: int) -> Row:
    row = {"job": job, "n": n, "case_id": job, "trial": 1, "status": "PASS", "branch_of": None}
    return cast("Row", row)


def test_forks_of_forks_are_one_tree() -> None:
    forks = {"b": Fork("a", 1), "c": Fork("b", 3), "x": Fork("y", 1), "y": Fork("x", 1)}
    families = ForkTrees(forks, [_row(job, n) for n, job in enumerate("abcdxy", start=1)])

    found = families.of("c")

    assert found is not None
    assert [(node["n"], node["parent_n"], node["forks_at"]) for node in found["tree"]] == [
        (1, None, 1),
        (2, 1, 2),
        (3, 2, 4),
    ]
    assert families.of("a") == {**found, "of": "a"}
    assert families.of("d") is None
    assert families.of("x") is None, "a journal that goes round has no tree"
