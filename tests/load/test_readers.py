"""Prompts of the user's own, in checks that a model reads."""

from __future__ import annotations

from pathlib import Path

import pytest

from skillup.load.suites import load_paths
from tests.support.trees import make_tree

PROMPT = "{prompt: 'Look at {{output}} and {{answer}}.'}"


@pytest.mark.parametrize(
    ("case", "place"),
    [
        (f"input: {{prompt: x}}\nassertions: [{{all_of: [{{relevance: {PROMPT}}}]}}]\n", (2, 45)),
        (f"input: {{turns: [{{content: x, post_condition: {{relevance: {PROMPT}}}}}]}}\n", (1, 67)),
    ],
)  # fmt: skip
def test_an_unknown_variable_is_told_where_it_stands(
    tmp_path: Path, case: str, place: tuple[int, int]
) -> None:
    make_tree(tmp_path, {"eval.yaml": "name: d\njudge: {model: 'anthropic:m'}\n", "c.yaml": case})
    (problem,) = load_paths([tmp_path]).problems
    assert (problem.severity, problem.line, problem.column) == ("error", *place)
    assert problem.message == "{{answer}} is not a variable of a judge's prompt"
    assert "{{input}}, {{output}}, {{criteria}}, {{expected_output}}" in problem.fix
