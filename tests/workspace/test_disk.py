"""Copies of trees, where links lead, and what counts as a full disk."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from skillup.errors import ExitCode, FullDiskError
from skillup.workspace.disk import (
    copy_workspace,
    refuse_full_disk,
    refuse_without_room,
    stays_inside,
)
from tests.support.trees import make_tree, tree_of


def test_permissions_times_and_empty_directories_are_kept(tmp_path: Path) -> None:
    source = make_tree(tmp_path / "from", {"run.sh": "x", "secret": "y", "locked/file": "z"})
    (source / "empty").mkdir()
    (source / "run.sh").chmod(0o755)
    (source / "secret").chmod(0o400)
    (source / "locked").chmod(0o555)
    os.utime(source / "run.sh", (1, 1))
    os.utime(source / "locked", (2, 2))
    copy_workspace(source, tmp_path / "to")
    for path, mode in {"run.sh": 0o755, "secret": 0o400, "locked": 0o555, "empty": 0o755}.items():
        assert (tmp_path / "to" / path).stat().st_mode & 0o777 == mode
    assert (tmp_path / "to" / "run.sh").stat().st_mtime == 1
    assert (tmp_path / "to" / "locked").stat().st_mtime == 2
    for root in (source, tmp_path / "to"):
        (root / "locked").chmod(0o755)


def test_a_workspace_is_copied_with_git_and_links_and_without_fifos(tmp_path: Path) -> None:
    source = make_tree(tmp_path / "from", {".git/HEAD": "ref", "a": "x"})
    links = {"out": "/etc/hosts", "one": "./a", "two": "b/../a", "three": "missing"}
    for name, target in links.items():
        os.symlink(target, source / name)  # noqa: PTH211 - as it is written
    os.mkfifo(source / "pipe")
    copy_workspace(source, tmp_path / "to")
    copied = {name: f"-> {target}" for name, target in links.items()}
    assert tree_of(tmp_path / "to") == {"a": "x", **copied}
    assert (tmp_path / "to" / ".git" / "HEAD").read_text() == "ref"
    with pytest.raises(FileExistsError):
        copy_workspace(source, tmp_path / "to")


@pytest.mark.parametrize(
    ("target", "inside"),
    [
        ("file", True),
        ("./sub/../file", True),
        ("missing", True),
        ("sub", True),
        ("up/file", True),
        ("..", False),
        ("../root/file", False),
        ("../outside", False),
        ("/etc/passwd", False),
        ("sub/../../outside", False),
        ("up/../outside", False),
        ("link", True),
        (".", True),
    ],
)
def test_whether_links_stay_inside(tmp_path: Path, target: str, inside: bool) -> None:
    root = tmp_path / "root"
    (root / "sub").mkdir(parents=True)
    (root / "file").touch()
    (root / "sub" / "up").symlink_to("..")
    (root / "up").symlink_to("sub/up")
    (root / "link").symlink_to(target)
    assert stays_inside(root, "link") is inside
    (root / "absolute").symlink_to(root / "file")  # in a copy it would lead back to the original
    assert not stays_inside(root, "absolute")


def test_a_full_disk_ends_the_run_as_trouble_of_the_machine(tmp_path: Path) -> None:
    for number in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        with pytest.raises(FullDiskError, match="/work/big") as stopped:
            refuse_full_disk(OSError(number, os.strerror(number), "/work/big.bin"))
        assert os.strerror(number) in stopped.value.message
        assert "--resume" in (stopped.value.hint or "")
        assert stopped.value.exit_code == ExitCode.ERROR
        with pytest.raises(FullDiskError, match="/work/raw"):
            refuse_full_disk(OSError(number, "no room"), Path("/work/raw"))
    for number in (errno.EACCES, errno.ENOENT, errno.EIO):
        refuse_full_disk(OSError(number, os.strerror(number)), Path("/work"))
    refuse_without_room(tmp_path)
    refuse_without_room(tmp_path / "gone")
