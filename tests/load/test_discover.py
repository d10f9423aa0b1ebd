"""From the paths on the command line to suites."""

from __future__ import annotations

from pathlib import Path

import pytest

from skillup.errors import UsageError
from skillup.load.discover import find_suites, is_case, workspace_root
from tests.support.trees import make_tree

SUITE = "name: demo\n"
CASE = "id: a\ninput: {prompt: hi}\n"


def found(root: Path, *names: str) -> dict[Path, tuple[Path, ...]]:
    return find_suites([root / name for name in names])


def test_a_folder_of_suites_means_all_but_other_peoples_by_name(tmp_path: Path) -> None:
    others = (".git", "node_modules", ".venv", "fixtures", "__pycache__")
    make_tree(tmp_path, {f"{name}/eval.yaml": SUITE for name in ("b", "a/deep", *others)})
    paths = list(found(tmp_path, "."))
    assert paths == [tmp_path / "a/deep/eval.yaml", tmp_path / "b/eval.yaml"]


@pytest.mark.parametrize(
    ("suite", "given"),
    [
        ("eval.yaml", "cases/deep/a.yaml"),
        ("cases/eval.yaml", "cases/deep/a.yaml"),
        ("evals/eval.yaml", "evals/cases/a.yaml"),
        ("eval.yaml", "cases"),
    ],
)
def test_a_case_or_a_folder_of_cases_belongs_to_the_nearest_suite_above(
    tmp_path: Path, suite: str, given: str
) -> None:
    make_tree(tmp_path, {suite: SUITE, given if "." in given else f"{given}/a.yaml": CASE})
    assert found(tmp_path, given) == {(tmp_path / suite).resolve(): ((tmp_path / given).resolve(),)}


@pytest.mark.parametrize(
    ("name", "files", "said"),
    [
        ("nowhere", {}, "no such file or folder"),
        ("notes.txt", {"notes.txt": "x"}, "not a YAML file"),
        (".", {"readme.md": "x"}, "no eval.yaml in it or below it"),
        ("a.yaml", {"a.yaml": CASE}, "no eval.yaml beside it or above it"),
    ],
)
def test_a_path_that_means_no_suite_is_a_mistake_with_a_hint(
    tmp_path: Path, name: str, files: dict[str, str], said: str
) -> None:
    make_tree(tmp_path, files)
    with pytest.raises(UsageError, match=said) as caught:
        found(tmp_path, name)
    assert caught.value.hint


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("input: {prompt: x}\n", True),
        ("name: x\ncases:\n  files: []\n", False),
        ('{"input": {"prompt": "x"}}\n', True),
        ("id: x\nimput: {prompt: hi}\n", True),
        ("", False),
        ("schema_version: v1alpha1\ninput :\n  prompt: x\n", True),
    ],
)
def test_a_case_is_known_by_its_keys_even_with_a_mistake_in_it(
    tmp_path: Path, text: str, expected: bool
) -> None:
    path = tmp_path / "x.yaml"
    path.write_text(text)
    assert is_case(path) is expected


PROFILE = "engine: scripted\n"


@pytest.mark.parametrize(
    ("files", "found"),
    [
        ({"a/engines/x.yaml": PROFILE}, "a"),
        ({"a/engines/x.yaml": "# ours\ncommand: agent\n", "a/b/eval.yaml": SUITE}, "a"),
        ({"a/skillup.yaml": "", "engines/x.yaml": PROFILE}, "a"),
        ({"a/b/.git": "gitdir: elsewhere\n", "a/engines/x.yaml": PROFILE}, "a"),  # a submodule
        ({"a/.git/HEAD": "", "a/b/c/.skillup/runs/x": "", ".git/HEAD": ""}, "a"),
        ({"a/.git/HEAD": "", "a/b/engines/rails.yml": "gems: []\n"}, "a"),
        ({"a/b/engines/readme.md": PROFILE}, "a/b/c"),  # nothing marks one
    ],
)
def test_the_workspace_is_the_nearest_that_is_marked_else_the_repository(
    tmp_path: Path, files: dict[str, str], found: str
) -> None:
    make_tree(tmp_path, {"a/b/c/cases/a.yaml": CASE, **files})
    assert workspace_root(tmp_path / "a/b/c") == (tmp_path / found).resolve()


def test_a_workspace_is_never_where_anybody_may_write_nor_ones_home_from_below(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_tree(tmp_path, {"a/b/eval.yaml": SUITE, "a/engines/x.yaml": PROFILE, "skillup.yaml": ""})
    assert workspace_root(tmp_path / "a/b/eval.yaml") == (tmp_path / "a").resolve()
    (tmp_path / "a").chmod(0o777)
    assert workspace_root(tmp_path / "a/b") == tmp_path.resolve()
    monkeypatch.setenv("HOME", str(tmp_path))
    assert workspace_root(tmp_path / "a/b") == (tmp_path / "a/b").resolve()
    assert workspace_root(tmp_path) == tmp_path.resolve()
