"""Whether links stay inside of a tree that will stand somewhere else."""

from __future__ import annotations

from pathlib import Path

import pytest

from skillup.workspace.trees import stays_inside


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
        ("link", False),
        (".", True),
    ],
)
def test_targets(tmp_path: Path, target: str, inside: bool) -> None:
    root = tmp_path / "root"
    (root / "sub").mkdir(parents=True)
    (root / "file").touch()
    (root / "sub" / "up").symlink_to("..")
    (root / "up").symlink_to("sub/up")
    (root / "link").symlink_to(target)
    assert stays_inside(root, "link") is inside


def test_an_absolute_link_into_the_tree_itself_leaves_a_copy_of_it(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "file")
    assert not stays_inside(tmp_path, "link")
