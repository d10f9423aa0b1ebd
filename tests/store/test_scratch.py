"""Scratch directories: outside of every project, removed whatever agents left in them."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from skillup.store.scratch import Scratch, remove_orphaned, remove_tree, user_directory
from tests.support.trees import make_deep


def test_a_place_outside_of_the_run_that_is_gone_when_all_is_removed(tmp_path: Path) -> None:
    scratch = Scratch(tmp_path / "scratch")
    used = scratch.directory("case/profile/with_skill/1")
    assert used == used.resolve()
    assert not used.is_relative_to(tmp_path.resolve())
    assert used.parent.stat().st_mode & 0o077 == 0
    assert (tmp_path / "scratch" / used.name).is_dir()
    (used / "file").touch()

    again = Scratch(tmp_path / "scratch")  # another process of the same run
    assert again.directory("case/profile/with_skill/1") == used
    assert again.directory("b").parent == used.parent
    again.close()
    assert (used / "file").exists()  # what is still needed is kept
    assert not (used.parent / "b").exists()
    assert scratch.remove("case/profile/with_skill/1")
    scratch.close()
    assert not used.parent.exists()
    assert list(tmp_path.iterdir()) == []


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
    make_deep(tree)

    assert remove_tree(tree)
    assert not tree.exists()


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


def test_what_finished_trials_leave_waits_but_for_logins_and_goes_at_the_end(
    tmp_path: Path,
) -> None:
    scratch = Scratch(tmp_path / "scratch")
    places = {name: scratch.directory(name) for name in ("small", "large", "login", "kept")}
    (places["small"] / "file").touch()
    for number in range(600):
        (places["large"] / str(number)).touch()
    (places["login"] / "home").mkdir()
    (places["login"] / "home" / "auth.json").touch()
    (places["kept"] / "file").touch()
    left = {name: scratch.set_aside(name) for name in ("small", "large", "login")}
    for work in filter(None, left.values()):
        work()
    assert not any(places[name].exists() for name in left)
    waits, kept = sorted(places["kept"].parent.iterdir(), key=lambda path: "." not in path.name)
    assert kept == places["kept"]
    assert waits.name.startswith(places["small"].name)

    (scratch.directory("small") / "file").touch()  # another attempt, which finishes, too
    again = scratch.set_aside("small")
    assert again is not None
    again()
    assert not places["small"].exists()
    Scratch(tmp_path / "scratch").close()  # of the next start, after one that was killed
    assert list(places["kept"].parent.iterdir()) == [kept]
