"""A case with branches is a linear case for each path through it."""

from __future__ import annotations

from pathlib import Path

import pytest

from skillup.load.model import Loaded
from skillup.load.suites import load_paths
from tests.support.trees import make_tree

NESTED = """
title: t
input:
  turns:
    - content: one
      capture: [{variable: a, pattern: '(x)'}]
      branches:
        - name: left
          turns: ["left <<a>>"]
          assertions: [{contains: l}]
    - content: two
      branches:
        - name: right
          turns:
            - content: right
              branches:
                - {name: up, turns: [up], assertions: [{contains: u}]}
                - {name: down, turns: [down, deeper]}
          assertions: [{contains: r}]
    - three
assertions: [{contains: all}]
"""


def load(root: Path, case: str, **more: str) -> Loaded:
    files = {f"s/{name}.yaml": text for name, text in more.items()}
    make_tree(root, {"s/eval.yaml": "name: d\n", "s/c.yaml": case, **files})
    return load_paths([root / "s"])


def errors(loaded: Loaded) -> list[str]:
    return [f"{p.line}:{p.column} {p.field}: {p.message}" for p in loaded.errors]


def test_a_path_has_the_turns_to_its_end_and_the_checks_of_its_branches(tmp_path: Path) -> None:
    (suite,) = load(tmp_path, NESTED).or_raise().suites
    turns = {c.case.id: [t.content for t in c.case.input.all_turns()] for c in suite.cases}
    assert turns == {
        "c": ["one", "two", "three"],
        "c/left": ["one", "left <<a>>"],
        "c/right/up": ["one", "two", "right", "up"],
        "c/right/down": ["one", "two", "right", "down", "deeper"],
    }
    assert {c.branch_of for c in suite.cases} == {"c"}
    assert not any(t.branches for c in suite.cases for t in c.case.input.all_turns())
    checks = {
        c.case.id: [check.contains.all for check in c.case.assertions if check.contains]
        for c in suite.cases
    }
    assert checks == {
        "c": [["all"]],
        "c/left": [["all"], ["l"]],
        "c/right/up": [["all"], ["r"], ["u"]],
        "c/right/down": [["all"], ["r"]],
    }


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("left <<a>>", "left <<b>>", "8:19 input.turns[0].branches[0].turns[0].content: <<b>> is"),
        (
            "[{contains: u}]",
            "[{tool_called_in_turn: {turn: 5, kind: shell}}]",
            "16:85 input.turns[1].branches[0].turns[0].branches[0].assertions[0]."
        ),
        ("name: down", "name: UP", "17:26 input.turns[1].branches[0].turns[0].branches[1].name"),
        ("name: left", "name: a/b", "7:17 input.turns[0].branches[0].name: `a/b` has not"),
        ("name: left", "name: right", "12:17 input.turns[1].branches[0].name: there is another"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_told_where_it_is_written(
    tmp_path: Path, old: str, new: str, told: str
) -> None:
    (error,) = errors(load(tmp_path, NESTED.strip().replace(old, new)))
    assert error.startswith(told)


def test_a_number_that_is_too_high_is_reported_for_each_path(tmp_path: Path) -> None:
    case = NESTED.strip().replace("{contains: all}", "{turn: 4, contains: all}")
    assert errors(load(tmp_path, case)) == [
        "20:21 assertions[0].turn: turn 4 of a case with 3",
        "20:21 assertions[0].turn: turn 4 of a case with 2",
    ]


@pytest.mark.parametrize(
    ("of_c", "of_b", "message"),
    [
        ("", "c, c/left, c/right/up", None),
        ("c", "", "depends on itself"),
        ("c/left", "", "depends on itself"),
        ("c/nowhere", "", "there is no other case `c/nowhere`"),
        ("b", "c/left", "wait for each other"),
    ],
)
def test_a_case_may_depend_on_all_paths_of_another_or_on_one(
    tmp_path: Path, of_c: str, of_b: str, message: str | None
) -> None:
    case = f"depends_on: [{of_c}]\n{NESTED}"
    other = f"depends_on: [{of_b}]\ninput: {{prompt: x}}\nassertions: [{{contains: x}}]\n"
    found = errors(load(tmp_path, case, b=other))
    assert len(found) == (message is not None)
    assert (message or "") in "".join(found)
