"""Scratch directories: outside of every project, removed whatever agents left in them."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from skillup.store.scratch import Scratch, remove_orphaned, remove_tree, user_directory


def test_it_is_not_below_the_run_directory(tmp_path: Path) -> None:
    scratch = Scratch(tmp_path / "scratch")
    directory = scratch.directory("case/profile/with_skill/1")
    assert directory == directory.resolve()
    assert not directory.is_relative_to(tmp_path.resolve())
    assert directory.parent.stat().st_mode & 0o077 == 0
    assert (tmp_path / "scratch" / directory.name).is_dir()
    scratch.close()


def test_another_process_of_the_same_run_finds_the_same_place(tmp_path: Path) -> None:
    first = Scratch(tmp_path / "scratch")
    directory = first.directory("a")
    second = Scratch(tmp_path / "scratch")
    assert second.directory("a") == directory
    assert second.directory("b").parent == directory.parent
    second.close()


def test_nothing_is_left_when_all_is_removed(tmp_path: Path) -> None:
    scratch = Scratch(tmp_path / "scratch")
    used, unused = scratch.directory("a"), scratch.directory("b")
    (used / "file").touch()
    assert scratch.remove("a")
    scratch.close()
    assert not used.exists()
    assert not unused.parent.exists()
    assert list(tmp_path.iterdir()) == []


def test_what_is_still_needed_is_kept(tmp_path: Path) -> None:
    scratch = Scratch(tmp_path / "scratch")
    kept = scratch.directory("a")
    (kept / "file").touch()
    scratch.close()
    assert (kept / "file").exists()
    remove_tree(kept.parent)


@pytest.mark.parametrize("mode", [0o755, 0o777])
def test_a_place_that_others_could_have_made_is_not_used(tmp_path: Path, mode: int) -> None:
    foreign = tmp_path / "foreign"
    foreign.mkdir()
    foreign.chmod(mode)
    (tmp_path / "scratch").symlink_to(foreign)
    scratch = Scratch(tmp_path / "scratch")
    assert not scratch.directory("a").is_relative_to(foreign)
    scratch.close()


def test_read_only_directories_are_removed_and_links_not_followed(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "precious").touch()
    outside.chmod(0o555)
    tree = tmp_path / "tree"
    (tree / "cache" / "deep").mkdir(parents=True)
    (tree / "cache" / "deep" / "file").touch()
    (tree / "link").symlink_to(outside)
    subprocess.run(["mkfifo", tree / "pipe"], check=True)
    (tree / "cache" / "deep").chmod(0o500)
    (tree / "cache").chmod(0)
    assert remove_tree(tree)
    assert (outside / "precious").exists()
    assert outside.stat().st_mode & 0o777 == 0o555
    outside.chmod(0o755)


def test_a_tree_that_is_too_deep_for_a_path_is_removed(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    tree.mkdir()
    subprocess.run(
        ["sh", "-c", "for i in $(seq 1500); do mkdir deep && cd -P deep || exit 1; done; : > end"],
        cwd=tree,
        check=True,
    )

    assert remove_tree(tree)
    assert not tree.exists()


def test_what_links_lead_to_stays(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    (outside / "kept").mkdir(parents=True)
    tree = tmp_path / "tree"
    (tree / "below").mkdir(parents=True)
    (tree / "link").symlink_to(outside)
    (tree / "below" / "link").symlink_to(outside)

    assert remove_tree(tree)
    assert (outside / "kept").is_dir()


def test_a_place_whose_run_directory_is_gone_is_removed_at_the_next_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S11: a login copied for a trial stayed for good after kill -9 and removal of the run."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for run in ("gone", "kept"):
        (tmp_path / run).mkdir()
    gone = Scratch(tmp_path / "gone" / "scratch").directory("a")
    kept = Scratch(tmp_path / "kept" / "scratch").directory("a")
    (gone / "auth.json").write_text("a login")
    shutil.rmtree(tmp_path / "gone")

    remove_orphaned()

    assert not gone.parent.exists()
    assert kept.exists()
    assert [note.name for note in user_directory("scratch").iterdir()] == [kept.parent.name]
    remove_tree(kept.parent)
