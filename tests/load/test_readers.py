"""Checks that a model reads: prompts of the user's own, and whether there is a model."""

from __future__ import annotations

from pathlib import Path

import pytest

from skillup.errors import Problem
from skillup.load.suites import load_paths
from tests.support.trees import make_tree

MODEL = "name: d\njudge: {model: 'anthropic:a-model'}\n"


def problems(root: Path, case: str, suite: str = MODEL) -> list[Problem]:
    make_tree(root, {"s/eval.yaml": suite, "s/c.yaml": case})
    return list(load_paths([root / "s"]).problems)


CASES = {
    "criteria": """
input: {prompt: x}
assertions:
  - rubric:
      criteria: [A]
      prompt: |
        Look at {{output}}
        and at {{ answer }}.
""",
    "post_condition": """
input:
  turns:
    - content: x
      post_condition:
        relevance: {prompt: "see {{answer}}"}
""",
    "nested": """
input: {prompt: x}
assertions:
  - all_of:
      - answer_quality: {prompt: "{{answer}}"}
""",
}


@pytest.mark.parametrize(
    ("name", "place"), [("criteria", (6, 15)), ("post_condition", (6, 29)), ("nested", (5, 34))]
)
def test_an_unknown_variable_is_told_where_it_stands(
    tmp_path: Path, name: str, place: tuple[int, int]
) -> None:
    (problem,) = problems(tmp_path, CASES[name])
    assert problem.severity == "error"
    assert (problem.line, problem.column) == place
    assert problem.message == "{{answer}} is not a variable of a judge's prompt"
    assert "{{input}}, {{output}}, {{criteria}}, {{expected_output}}" in problem.fix
