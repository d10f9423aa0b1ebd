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
        (["a/eval.yaml", "b/eval.yaml"], ["keeper (a)", "keeper (b)"]),
        (["a/evals/eval.yaml", "b/evals/eval.yaml"], ["keeper (a)", "keeper (b)"]),
        (["x/eval.yaml", "x/more/eval.yaml"], ["keeper (.)", "keeper (more)"]),
        (["a/x/eval.yaml", "b/y/eval.yaml"], ["keeper (a/x)", "keeper (b/y)"]),
        (["x/eval.yaml", "x/evals/eval.yaml"], ["keeper (.)", "keeper (evals)"]),
        (["a/a/eval.yaml", "a/a/a/eval.yaml"], ["keeper (.)", "keeper (a)"]),
        (["x/one.yaml", "x/two.yaml"], ["keeper (one.yaml)", "keeper (two.yaml)"]),
    ],
)
def test_they_are_told_apart_by_what_differs_in_their_paths(
    tmp_path: Path, files: list[str], names: list[str]
) -> None:
    make_tree(
        tmp_path,
        dict.fromkeys(files, "name: keeper\ncases: {files: [c.yml]}\n")
        | {f"{file.rpartition('/')[0].removesuffix('/evals')}/c.yml": CASE for file in files},
    )
    loaded = load_paths([tmp_path / file for file in files])
    assert loaded.errors == ()
    assert [suite.name for suite in loaded.suites] == names
    warnings = [str(warning).partition(";")[0] for warning in loaded.warnings]
    said = "1:7: warning: name: 2 suites are called keeper"
    assert sorted(warnings) == sorted(f"{tmp_path / file}:{said}" for file in files)


def test_others_keep_their_names(tmp_path: Path) -> None:
    suites = {f"{name}/eval.yaml": f"name: {name}\n" for name in ("a", "b")}
    make_tree(tmp_path, {**suites, "a/c.yaml": CASE, "b/c.yaml": CASE, "b/d.yaml": CASE})
    # The same suite twice is one.
    loaded = load_paths([tmp_path, tmp_path / "b", tmp_path / "b/c.yaml"])
    assert [suite.name for suite in loaded.suites] == ["a", "b"]
    assert loaded.problems == ()


def test_the_name_that_a_folder_gives_counts_too(tmp_path: Path) -> None:
    make_tree(tmp_path, {"a/logs/eval.yaml": "description: x\n", "a/logs/c.yaml": CASE})
    make_tree(tmp_path, {"b/logs/eval.yaml": "description: x\n", "b/logs/c.yaml": CASE})
    loaded = load_paths([tmp_path])
    assert [suite.name for suite in loaded.suites] == ["logs (a)", "logs (b)"]


def test_datasets_are_told_apart_too_without_a_word_as_they_cannot_be_named(tmp_path: Path) -> None:
    item = '{"input": "hello"}\n'
    make_tree(tmp_path, {"a/items.jsonl": item, "b/items.jsonl": item})
    loaded = load_paths([tmp_path / "a/items.jsonl", tmp_path / "b/items.jsonl"])
    assert [suite.name for suite in loaded.suites] == ["items (a)", "items (b)"]
    assert not [problem for problem in loaded.problems if "are called" in problem.message]
