"""Suites and their cases as they are loaded: which files, which ids, which problems."""

from __future__ import annotations

from pathlib import Path

from skillup.load.model import Loaded
from skillup.load.suites import load_paths
from tests.support.trees import make_tree

CASE = "input: {prompt: hi}\nassertions: [{contains: x}]\n"


def load(root: Path, files: dict[str, str], *paths: str) -> Loaded:
    make_tree(root, files)
    return load_paths([root / path for path in paths or ["."]])


def ids(loaded: Loaded) -> list[str]:
    return [case.case.id for suite in loaded.suites for case in suite.cases]


def told(loaded: Loaded) -> list[str]:
    """``FILE:LINE:COLUMN: …`` with the bare names of files."""
    return [str(p).removeprefix(f"{p.file.parent}/") for p in loaded.problems]


def named(case_id: str, *needs: str) -> str:
    return f"id: {case_id}\ndepends_on: [{', '.join(needs)}]\n{CASE}"


def test_without_a_list_every_yaml_beside_the_suite_and_in_cases_is_a_case(tmp_path: Path) -> None:
    loaded = load(
        tmp_path,
        {
            "eval.yaml": "name: demo\n",
            "b.yaml": CASE,
            "a.yml": CASE,
            "cases/c.yaml": CASE,
            "cases/deeper/d.yaml": CASE,
            "notes.txt": "x",
            ".hidden.yaml": "not: [a case",
            "eval-other.yaml": "name: other\n",
            "cases/evaluate.yaml": CASE,
        },
    )
    assert told(loaded) == []
    assert ids(loaded) == ["a", "b", "c", "evaluate"]


def test_a_suite_without_cases_is_a_mistake(tmp_path: Path) -> None:
    loaded = load(tmp_path, {"eval.yaml": "name: demo\n"})
    assert told(loaded) == ["eval.yaml:1:1: cases: no case files beside it or in cases/"]


def test_cases_are_taken_in_the_order_of_the_list_and_each_once(tmp_path: Path) -> None:
    suite = "cases: {files: [z.yaml, 'more/*.yaml', more/b.yaml, z.yaml, '*.yaml']}\n"
    files = {"z.yaml": CASE, "more/b.yaml": CASE, "more/a.yaml": CASE, "y.yaml": CASE}
    loaded = load(tmp_path, {"s/eval.yaml": suite, **{f"s/{k}": v for k, v in files.items()}}, "s")
    assert ids(loaded)[:3] == ["z", "a", "b"]


def test_what_the_list_names_must_be_there(tmp_path: Path) -> None:
    suite = "cases:\n  files: [b.yaml,\n a.yaml,\n 'x/*.yaml',\n 'a**.yaml']\n"
    loaded = load(tmp_path, {"s/eval.yaml": suite, "s/b.yaml": CASE}, "s")
    assert told(loaded) == [
        "eval.yaml:3:2: cases.files[1]: matches no file: a.yaml (paths start from s/)",
        "eval.yaml:4:2: cases.files[2]: matches no file: x/*.yaml (paths start from s/)",
        "eval.yaml:5:2: cases.files[3]: matches no file: a**.yaml (paths start from s/)",
    ]
    assert ids(loaded) == ["b"]


def test_in_evals_paths_start_from_the_skill_or_from_the_suite_itself(tmp_path: Path) -> None:
    suite = "cases: {files: [evals/cases/a.yaml, cases/b.yaml]}\n"
    files = {"s/evals/eval.yaml": suite, "s/evals/cases/a.yaml": CASE, "s/evals/cases/b.yaml": CASE}
    loaded = load(tmp_path, files, "s")
    assert (ids(loaded), told(loaded)) == (["a", "b"], [])
    assert loaded.suites[0].root == (tmp_path / "s").resolve()
    assert loaded.suites[0].name == "s"


def test_an_id_that_is_taken_is_told_with_both_files(tmp_path: Path) -> None:
    files = {
        "eval.yaml": "name: d\n",
        "a.yaml": named("Same"),
        "b.yaml": f"title: t\n{named('same')}",
    }
    assert told(load(tmp_path, files)) == [
        (
            "b.yaml:2:5: id: `same` is the id of `Same` (a.yaml:1) already; give one of them "
            "another id; upper and lower case are the same in file names"
        )
    ]


def test_a_dependency_on_no_case_is_told_with_what_may_be_meant(tmp_path: Path) -> None:
    files = {
        "eval.yaml": "name: d\n",
        "create-files.yaml": CASE,
        "b.yaml": named("b", "create-file"),
        "c.yaml": named("c", "zzz"),
    }
    assert told(load(tmp_path, files)) == [
        (
            "b.yaml:2:14: depends_on[0]: there is no other case `create-file` in this suite; "
            "did you mean `create-files`?"
        ),
        (
            "c.yaml:2:14: depends_on[0]: there is no other case `zzz` in this suite; "
            "others are: b, create-files"
        ),
    ]


def test_a_circle_is_told_once(tmp_path: Path) -> None:
    circles = {"a": ["b"], "b": ["c"], "c": ["a"], "f": ["a"]}
    files = {f"{name}.yaml": named(name, *needs) for name, needs in circles.items()}
    problems = told(load(tmp_path, {"eval.yaml": "name: d\n", **files}))
    (problem,) = problems
    assert "depends_on: these cases wait for each other: " in problem
    assert all(f"{name} → {needs[0]}" in problem for name, needs in circles.items() if name != "f")


def test_depending_on_a_case_that_does_not_validate_is_no_second_problem(tmp_path: Path) -> None:
    files = {
        "eval.yaml": "name: d\n",
        "a.yaml": f"id: first\nbogus: 1\n{CASE}",
        "b.yaml": named("b", "first", "c"),
        "c.yaml": "a: [",
    }
    assert [line.split(": ")[0] for line in told(load(tmp_path, files))] == [
        "a.yaml:2:1",
        "c.yaml:1:5",
    ]


def test_two_suites_of_one_name_are_a_mistake(tmp_path: Path) -> None:
    files = {f"{place}/eval.yaml": "name: keeper\n" for place in "ab"}
    loaded = load(tmp_path, files | {f"{place}/c.yaml": CASE for place in "ab"}, "a", "b")
    assert told(loaded) == [
        (
            f"eval.yaml:1:7: name: `keeper` is the name of {tmp_path}/a/eval.yaml already; "
            "give each suite a `name` of its own: results are distinguished by it"
        )
    ]
