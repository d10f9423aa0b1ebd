"""The files that are sent to workers."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from skillup.errors import SkillupError
from skillup.executors.cluster.parcel import WantedFiles, pack, unpack
from skillup.redaction.secrets import Secrets
from tests.support.trees import make_tree

NONE = Secrets({})


def sent(tmp_path: Path, wanted: WantedFiles) -> Path:
    """What takes the place of `tmp_path` at a worker."""
    root = tmp_path / "worker"
    root.mkdir()
    unpack(pack(wanted, NONE).data, root)
    return root / tmp_path.relative_to("/")


def names(root: Path) -> set[str]:
    return {path.relative_to(root).as_posix() for path in root.rglob("*") if not path.is_dir()}


def test_paths_lead_to_each_other_as_they_did(tmp_path: Path) -> None:
    make_tree(tmp_path, {"a/suite/x.yaml": "x", "b/skill/SKILL.md": "s"})
    suite = tmp_path / "a" / "suite"
    there = sent(tmp_path, WantedFiles((suite, suite / "../../b/skill")))
    assert (there / "a/suite/../../b/skill/SKILL.md").read_text() == "s"


def test_version_control_and_caches_are_left_out_but_of_fixtures(tmp_path: Path) -> None:
    make_tree(
        tmp_path,
        {
            "s/eval.yaml": "",
            "s/.git/HEAD": "",
            "s/.skillup/runs/1/run.json": "",
            "s/__pycache__/x.pyc": "",
            "s/fixtures/repo/.git/HEAD": "",
        },
    )
    suite = tmp_path / "s"
    there = sent(tmp_path, WantedFiles((suite,), whole=(suite / "fixtures/repo",)))
    assert names(there) == {"s/eval.yaml", "s/fixtures/repo/.git/HEAD"}


def test_permissions_come_along(tmp_path: Path) -> None:
    make_tree(tmp_path, {"s/run.sh": "#!/bin/sh\n"})
    (tmp_path / "s/run.sh").chmod(0o755)
    assert os.access(sent(tmp_path, WantedFiles((tmp_path / "s",))) / "s/run.sh", os.X_OK)


def test_a_suite_behind_a_link_is_found_behind_it(tmp_path: Path) -> None:
    make_tree(tmp_path, {"real/s/eval.yaml": "here"})
    (tmp_path / "link").symlink_to(tmp_path / "real")
    there = sent(tmp_path, WantedFiles((tmp_path / "link/s",)))
    assert (there / "link/s/eval.yaml").read_text() == "here"
    assert (there / "link").resolve() == (there / "real").resolve()


def test_links_stay_links_and_bring_the_file_that_they_lead_to(tmp_path: Path) -> None:
    make_tree(tmp_path, {"s/eval.yaml": "", "common/judge.yaml": "rules", "s/own.txt": "own"})
    (tmp_path / "s/judge.yaml").symlink_to("../common/judge.yaml")
    (tmp_path / "s/same.txt").symlink_to("own.txt")
    (tmp_path / "s/broken").symlink_to("nowhere")
    (tmp_path / "s/around").symlink_to(".")
    there = sent(tmp_path, WantedFiles((tmp_path / "s",)))
    assert (there / "s/judge.yaml").is_symlink()
    assert (there / "s/judge.yaml").read_text() == "rules"
    assert str((there / "s/same.txt").readlink()) == "own.txt"
    assert str((there / "s/broken").readlink()) == "nowhere"


def test_the_same_files_have_the_same_digest(tmp_path: Path) -> None:
    make_tree(tmp_path, {"s/a": "1", "s/b": "2"})
    wanted = WantedFiles((tmp_path / "s",))
    before = pack(wanted, NONE).digest
    assert pack(wanted, NONE).digest == before
    (tmp_path / "s/a").write_text("other")
    assert pack(wanted, NONE).digest != before


def test_too_much_is_refused_and_the_folder_named(tmp_path: Path) -> None:
    make_tree(tmp_path, {"s/eval.yaml": "", "s/data/deep/big.bin": "x" * 5000, "s/a": "y"})
    with pytest.raises(SkillupError, match=r"most of it is below .*/s/data/deep$") as caught:
        pack(WantedFiles((tmp_path / "s",)), NONE, largest_bytes=3000)
    assert caught.value.exit_code == 3


def test_a_credential_in_a_file_is_refused(tmp_path: Path) -> None:
    make_tree(tmp_path, {"s/eval.yaml": "key: sk-12345678"})
    with pytest.raises(SkillupError, match=r"s/eval.yaml: holds the value of LAB_KEY"):
        pack(WantedFiles((tmp_path / "s",)), Secrets({"LAB_KEY": "sk-12345678"}))


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    make_tree(tmp_path, {"s/secret": ""})
    (tmp_path / "s/secret").chmod(0)
    with pytest.raises(SkillupError, match="s/secret: cannot be sent"):
        pack(WantedFiles((tmp_path / "s",)), NONE)
