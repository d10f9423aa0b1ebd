"""Suites of the same name that are loaded together."""

from __future__ import annotations

from pathlib import Path

import pytest

from skillup.load.suites import load_paths
from tests.support.trees import make_tree

CASE = "input: {prompt: hi}\nassertions: [{contains: x}]\n"


@pytest.mark.parametrize(
    ("files", "names"),
    [
        (["a/evals/eval.yaml", "b/evals/eval.yaml"], ["keeper (a)", "keeper (b)"]),
        (["x/eval.yaml", "x/more/eval.yaml"], ["keeper (.)", "keeper (more)"]),
        (["x/one.yaml", "x/two.yaml"], ["keeper (one.yaml)", "keeper (two.yaml)"]),
    ],
)
def test_they_have_their_folders_behind_their_names(
    tmp_path: Path, files: list[str], names: list[str]
) -> None:
    text = "name: keeper\ncases: {files: [c.yml]}\n"
    roots = {file.rpartition("/")[0].removesuffix("/evals") for file in files}
    make_tree(tmp_path, dict.fromkeys(files, text) | {f"{root}/c.yml": CASE for root in roots})
    loaded = load_paths([tmp_path / file for file in files])
    assert loaded.errors == ()
    assert [suite.name for suite in loaded.suites] == names
    warning = "1:7: warning: name: 2 suites are called keeper"
    assert [str(w).partition(";")[0] for w in loaded.warnings] == [
        f"{tmp_path / file}:{warning}" for file in files
    ]


def test_datasets_have_them_without_a_warning_as_they_cannot_be_named(tmp_path: Path) -> None:
    item = '{"input": "hello"}\n'
    make_tree(tmp_path, {"a/items.jsonl": item, "b/items.jsonl": item})
    loaded = load_paths([tmp_path / "a/items.jsonl", tmp_path / "b/items.jsonl"])
    assert [suite.name for suite in loaded.suites] == ["items (a)", "items (b)"]
    assert not [problem for problem in loaded.problems if "are called" in problem.message]
