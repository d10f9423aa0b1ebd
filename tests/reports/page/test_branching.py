"""How trials branch, from the forks that a journal tells."""

from __future__ import annotations

from typing import Any

from skillup.reports.html.rows import shape_of
from skillup.reports.html.run_files import Fork


def _shown(node: dict[str, Any]) -> Any:
    own = node["job"] or (node["name"], *node["shared"])
    below = [_shown(child) for child in node["children"]]
    return (own, node["own_from"], *below)


def test_branches_of_a_branch_are_siblings_beneath_what_they_share() -> None:
    forks = {"no": Fork("main", 1), "thanks": Fork("main", 1), "undo": Fork("thanks", 2)}
    cases = {"main": "c", "no": "c/no", "thanks": "c/yes/thanks", "undo": "c/yes/undo"}

    shape = shape_of(forks, cases)

    yes = (("c/yes", 2, 2), 2, ("thanks", 3), ("undo", 3))
    assert _shown(shape) == ("main", 1, ("no", 2), yes)


def test_a_branch_that_goes_on_by_itself_stands_above_its_own_branches() -> None:
    forks = {"yes": Fork("main", 2), "undo": Fork("yes", 3), "thanks": Fork("yes", 3)}
    cases = {"main": "a/c", "yes": "a/c/yes", "undo": "a/c/yes/undo", "thanks": "a/c/yes/thanks"}

    shape = shape_of(forks, cases)

    assert _shown(shape) == ("main", 1, ("yes", 3, ("undo", 4), ("thanks", 4)))


def test_branches_that_begin_alike_share_turns_without_a_name() -> None:
    forks = {"x": Fork("main", 1), "y": Fork("x", 3)}
    cases = {"main": "c", "x": "c/x", "y": "c/y"}

    shape = shape_of(forks, cases)

    assert _shown(shape) == ("main", 1, ((None, 2, 3), 2, ("x", 4), ("y", 4)))


def test_of_a_trial_that_is_not_shown_the_turns_are() -> None:
    forks = {"x": Fork("main", 1), "y": Fork("main", 1)}

    shape = shape_of(forks, {"x": "c/x", "y": "c/y"})

    assert _shown(shape) == (("c", 1, 1), 1, ("x", 2), ("y", 2))


def test_the_first_branch_may_be_the_one_that_others_fork_from_again_and_again() -> None:
    forks = {"b": Fork("a", 3), "c": Fork("a", 1), "d": Fork("c", 2)}
    cases = {"a": "f/x/y/a", "b": "f/x/y/b", "c": "f/z/c", "d": "f/z/d"}

    shape = shape_of(forks, cases)

    inner = (("f/x/y", 2, 3), 2, ("a", 4), ("b", 4))
    assert _shown(shape) == (("f", 1, 1), 1, inner, (("f/z", 2, 2), 2, ("c", 3), ("d", 3)))
