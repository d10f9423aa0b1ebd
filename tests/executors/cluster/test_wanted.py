"""Which files a plan needs elsewhere."""

from __future__ import annotations

from pathlib import Path

import pytest

from skillup.errors import SkillupError
from skillup.executors.cluster.wanted import wanted_by
from skillup.load.suites import load_paths
from skillup.plan import Plan, Selection, make_plan
from skillup.schema.profile import Profile
from tests.support.trees import make_tree

CASE = "input: {prompt: hi}\nassertions: [{contains: x}]\nscripted: [{say: x}]\n"


def plan_of(path: Path) -> Plan:
    suites = load_paths([path]).suites
    profiles = {str(suite.path): [Profile(name="p", engine="scripted")] for suite in suites}
    return make_plan(suites, profiles, Selection())


def trees(tmp_path: Path, path: str) -> set[str]:
    given = tmp_path / path
    suite = given if given.is_file() else given / "eval.yaml"
    wanted = wanted_by(plan_of(given), [given], [suite], [tmp_path], [])
    return {str(tree.resolve().relative_to(tmp_path)) for tree in wanted.trees}


def test_a_suite_with_what_it_names_outside_of_itself(tmp_path: Path) -> None:
    make_tree(
        tmp_path,
        {
            "s/eval.yaml": "name: s\nskills: [{path: ../k/own}]\ndistractors: [../k/near]\n"
            "cases: {files: [c.yaml, ../more/d.yaml]}\n",
            "s/c.yaml": CASE + "context: {fixture: ../data}\n",
            "more/d.yaml": CASE,
            "k/own/SKILL.md": "---\nname: own\ndescription: d\n---\n",
            "k/near/SKILL.md": "---\nname: near\ndescription: d\n---\n",
            "data/x": "",
            "engines/lab.yaml": "engine: scripted\n",
            "private/diary.txt": "",
        },
    )
    found = trees(tmp_path, "s")
    assert {"s", "k/own", "k/near", "more/d.yaml", "data", "engines"} <= found
    assert not {name for name in found if name.startswith("private") or name == "."}


def test_what_lies_beside_a_dataset_is_not_sent(tmp_path: Path) -> None:
    item = '{"id": "1", "input": {"messages": [{"role": "user", "content": "hi"}]}}\n'
    make_tree(tmp_path, {"home/items.jsonl": item, "home/letters/x": ""})
    assert "home" not in trees(tmp_path, "home/items.jsonl")


def test_texts_that_look_like_paths_are_none(tmp_path: Path) -> None:
    case = CASE.replace("prompt: hi", "prompt: ../private")
    make_tree(tmp_path, {"s/eval.yaml": "name: s\n", "s/c.yaml": case, "private/x": ""})
    assert "private" not in trees(tmp_path, "s")


def test_an_absolute_path_is_refused_before_the_start(tmp_path: Path) -> None:
    make_tree(tmp_path, {"k/SKILL.md": "---\nname: k\ndescription: d\n---\n", "s/c.yaml": CASE})
    (tmp_path / "s/eval.yaml").write_text(f"name: s\ndistractors: [{tmp_path}/k]\n")
    with pytest.raises(SkillupError, match=r"eval.yaml: .*/k is an absolute path") as caught:
        trees(tmp_path, "s")
    assert caught.value.hint == "write it relative to the suite"
