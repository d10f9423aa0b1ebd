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
    ("name", "place"), [("criteria", (8, 16)), ("post_condition", (6, 34)), ("nested", (5, 35))]
)
def test_an_unknown_variable_is_told_where_it_stands(
    tmp_path: Path, name: str, place: tuple[int, int]
) -> None:
    (problem,) = problems(tmp_path, CASES[name])
    assert problem.severity == "error"
    assert (problem.line, problem.column) == place
    assert problem.message == "{{answer}} is not a variable of a judge's prompt"
    assert "{{input}}, {{output}}, {{criteria}}, {{expected_output}}" in problem.fix


@pytest.mark.parametrize(
    ("case", "place", "key"),
    [
        ("input: {prompt: x}\nassertions: [{contains: a}, Nice, Short]\n", (2, 29), "rubric"),
        ("input: {prompt: x}\nexpected_output: y\n", (2, 18), "expected_output"),
        ("input: {turns: [{content: x, expected_output: y}]}\n", (1, 47), "expected_output"),
        ("input: {prompt: x}\nassertions: [{similar: y}]\n", (2, 24), "similar"),
        ("input: {prompt: x}\nexpect: {relevance: {}}\n", (2, 21), "relevance"),
    ],
)  # fmt: skip
def test_a_check_that_needs_a_model_is_warned_of_where_none_is_named(
    tmp_path: Path, case: str, place: tuple[int, int], key: str
) -> None:
    (problem,) = problems(tmp_path, case, "name: d\n")
    assert (problem.severity, problem.line, problem.column) == ("warning", *place)
    assert problem.message == f"`{key}` is read by a model, and none is named"


@pytest.mark.parametrize(
    ("case", "suite"),
    [
        ("assertions: [Is polite]\n", MODEL),
        ("assertions: [Is polite]\njudge_model: 'openai:a-model'\n", "name: d\n"),
        ("assertions: [{similar: {to: y, embedding_model: 'openai:small'}}]\n", "name: d\n"),
        ("assertions: [{contains: y}]\n", "name: d\n"),
    ],
)
def test_where_a_model_is_named_or_none_is_needed_nothing_is_said(
    tmp_path: Path, case: str, suite: str
) -> None:
    assert problems(tmp_path, f"input: {{prompt: x}}\n{case}", suite) == []
