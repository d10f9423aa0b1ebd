"""The files that are sent to workers."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from skillup.errors import SkillupError
from skillup.executors.cluster import pack, unpack
from skillup.load.suites import load_paths
from skillup.plan import Selection, make_plan
from skillup.redaction.secrets import Secrets
from skillup.schema.profile import Profile
from tests.support.trees import make_tree

CASE = "input: {prompt: hi}\nassertions: [{contains: x}]\nscripted: [{say: x}]\n"
SKILL = "---\nname: NAME\ndescription: d\n---\n"
SUITE = {"s/eval.yaml": "name: s\n", "s/c.yaml": CASE}


def packed(tmp_path: Path, path: str = "s", secrets: Secrets | None = None) -> bytes:
    given = (tmp_path / path).resolve()
    suites = load_paths([given]).suites
    plan = make_plan(
        suites,
        {str(suite.path): [Profile(name="p", engine="scripted")] for suite in suites},
        Selection(),
    )
    suite = given if given.is_file() else given / "eval.yaml"
    return pack(plan, [given], [suite], [tmp_path], [], secrets or Secrets({}))


def sent(tmp_path: Path, path: str = "s") -> Path:
    """What takes the place of `tmp_path` at a worker."""
    root = tmp_path.parent / f"{tmp_path.name}-worker"
    root.mkdir()
    unpack(packed(tmp_path, path), root)
    return root / tmp_path.relative_to("/")


def names(root: Path) -> set[str]:
    return {path.relative_to(root).as_posix() for path in root.rglob("*") if not path.is_dir()}


def test_a_suite_with_what_it_names_outside_of_itself(tmp_path: Path) -> None:
    make_tree(
        tmp_path,
        {
            "s/eval.yaml": "name: s\nskills: [{path: ../k/own}]\ndistractors: [../k/near]\n"
            "cases: {files: [c.yaml, ../more/d.yaml]}\n",
            "s/c.yaml": CASE + "context: {fixture: ../data}\n",
            "skillup.yaml": "",
            "s/.git/HEAD": "",
            "s/.skillup/runs/1/run.sqlite": "",
            "s/__pycache__/x.pyc": "",
            "more/d.yaml": CASE,
            "k/own/SKILL.md": SKILL.replace("NAME", "own"),
            "k/near/SKILL.md": SKILL.replace("NAME", "near"),
            "data/x": "",
            "data/.git/HEAD": "",  # of a fixture nothing is left out
            "engines/lab.yaml": "engine: scripted\n",
            "private/diary.txt": "",
        },
    )
    (tmp_path / "data/x").chmod(0o755)
    there = sent(tmp_path)
    found = {"s/eval.yaml", "s/c.yaml", "more/d.yaml", "k/own/SKILL.md", "k/near/SKILL.md"}
    assert names(there) == found | {"data/x", "data/.git/HEAD", "engines/lab.yaml", "skillup.yaml"}
    assert (there / "s/../k/own/SKILL.md").read_text() == SKILL.replace("NAME", "own")
    assert os.access(there / "data/x", os.X_OK)


def test_what_lies_beside_a_dataset_is_not_sent(tmp_path: Path) -> None:
    item = '{"id": "1", "input": {"messages": [{"role": "user", "content": "hi"}]}}\n'
    make_tree(tmp_path, {"home/items.jsonl": item, "home/letters/x": ""})
    assert names(sent(tmp_path, "home/items.jsonl")) == {"home/items.jsonl"}


def test_links_inside_stay_links_and_others_are_followed(tmp_path: Path) -> None:
    make_tree(tmp_path, {**{f"real/{name}": text for name, text in SUITE.items()}, "j": "rules"})
    (tmp_path / "s").symlink_to(tmp_path / "real/s")
    for name, target in {
        "same.txt": "c.yaml",
        "out.txt": "../../j",
        "whole.txt": str(tmp_path / "j"),
        "around": "..",
        "broken": "nowhere",
    }.items():
        (tmp_path / "real/s" / name).symlink_to(target)
    there = sent(tmp_path)
    there /= "real"
    assert str((there / "s/same.txt").readlink()) == "c.yaml"
    assert [(there / "s" / name).read_text() for name in ("out.txt", "whole.txt")] == ["rules"] * 2
    assert not any((there / "s" / name).is_symlink() for name in ("out.txt", "whole.txt"))


def test_what_holds_a_credential_is_refused_before_the_start(tmp_path: Path) -> None:
    make_tree(tmp_path, {**SUITE, "s/data/key": "key: sk-12345678"})
    with pytest.raises(SkillupError, match=r"s/data/key: holds a credential"):
        packed(tmp_path, secrets=Secrets({"LAB_KEY": "sk-12345678"}))
