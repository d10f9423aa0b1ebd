"""Copies of trees: permissions, links, odd names; what may not be copied."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from skillup.workspace import copy_workspace
from skillup.workspace.failures import PreparationError
from skillup.workspace.trees import copy_fixture
from tests.support.trees import make_tree, tree_of

ODD_NAMES = ["with space", "Grüße 你好", "new\nline", "-rf", "*", "'\"", "..dots", "trailing "]


@pytest.mark.parametrize("name", ODD_NAMES)
def test_odd_names_are_copied(tmp_path: Path, name: str) -> None:
    make_tree(tmp_path / "from", {f"{name}/{name}": name})
    (tmp_path / "to").mkdir()
    copy_fixture(tmp_path / "from", tmp_path / "to")
    assert tree_of(tmp_path / "to") == {f"{name}/{name}": name}


def test_permissions_times_and_empty_directories_are_kept(tmp_path: Path) -> None:
    source = make_tree(tmp_path / "from", {"run.sh": "x", "secret": "y", "locked/file": "z"})
    (source / "empty").mkdir()
    (source / "run.sh").chmod(0o755)
    (source / "secret").chmod(0o400)
    (source / "locked").chmod(0o555)
    os.utime(source / "run.sh", (1, 1))
    os.utime(source / "locked", (2, 2))
    (tmp_path / "to").mkdir()
    copy_fixture(source, tmp_path / "to")
    for path, mode in {"run.sh": 0o755, "secret": 0o400, "locked": 0o555, "empty": 0o755}.items():
        assert (tmp_path / "to" / path).stat().st_mode & 0o777 == mode
    assert (tmp_path / "to" / "run.sh").stat().st_mtime == 1
    assert (tmp_path / "to" / "locked").stat().st_mtime == 2
    for root in (source, tmp_path / "to"):
        (root / "locked").chmod(0o755)


def test_links_stay_links_with_their_targets_as_written(tmp_path: Path) -> None:
    source = make_tree(tmp_path / "from", {"a/file": "x"})
    for name, target in {"one": "./a/file", "two": "a/../a", "three": "missing"}.items():
        os.symlink(target, source / name)  # noqa: PTH211 - as it is written
    (tmp_path / "to").mkdir()
    copy_fixture(source, tmp_path / "to")
    assert tree_of(tmp_path / "to") == {
        "a/file": "x",
        "one": "-> ./a/file",
        "two": "-> a/../a",
        "three": "-> missing",
    }


def test_a_fixture_with_a_link_that_leads_out_is_refused_before_anything_is_copied(
    tmp_path: Path,
) -> None:
    source = make_tree(tmp_path / "from", {"a": "x"})
    (source / "z").symlink_to("../outside")
    (tmp_path / "to").mkdir()
    with pytest.raises(PreparationError, match=r"symbolic link z .* leads out"):
        copy_fixture(source, tmp_path / "to")
    assert tree_of(tmp_path / "to") == {}


def test_a_fixture_with_a_fifo_is_refused_without_waiting_for_it(tmp_path: Path) -> None:
    source = make_tree(tmp_path / "from", {})
    os.mkfifo(source / "pipe")
    (tmp_path / "to").mkdir()
    with pytest.raises(PreparationError, match="pipe"):
        copy_fixture(source, tmp_path / "to")


def test_a_workspace_is_copied_with_git_and_links_and_without_sockets(tmp_path: Path) -> None:
    source = make_tree(tmp_path / "from", {".git/HEAD": "ref", "a": "x"})
    (source / "out").symlink_to("/etc/hosts")
    os.mkfifo(source / "pipe")
    with socket.socket(socket.AF_UNIX) as server:
        # The path of a socket may only be short.
        here = Path.cwd()
        os.chdir(source)
        try:
            server.bind("s")
        finally:
            os.chdir(here)
        copy_workspace(source, tmp_path / "to")
    assert tree_of(tmp_path / "to") == {"a": "x", "out": "-> /etc/hosts"}
    assert (tmp_path / "to" / ".git" / "HEAD").read_text() == "ref"
    with pytest.raises(FileExistsError):
        copy_workspace(source, tmp_path / "to")
