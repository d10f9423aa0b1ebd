"""Scratch directories: outside of every project, removed whatever agents left in them."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path

import pytest

from skillup.process.tree import own_children, process_register
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

    unknown, finished = scratch.directory("b"), scratch.directory("c")
    kept = scratch.directory("d", unique=True)
    for place in (unknown, finished, kept):
        (place / "login").touch()

    again = Scratch(tmp_path / "scratch")  # another process of the same run
    owners = {used.name: "case/profile/with_skill/1", finished.name: None, kept.name: None}
    again.take_over(owners | {"damaged": "b"})
    # Killed before it was on the disk that it was begun, where nobody or another was before.
    assert not unknown.exists()
    assert not finished.exists()
    assert again.existing("case/profile/with_skill/1") == used
    assert again.directory("b").parent == used.parent
    again.close()
    assert (used / "file").exists()  # what is still needed is kept
    assert {place.name for place in used.parent.iterdir()} == {used.name, kept.name}
    remove_tree(kept)
    assert again.remove("case/profile/with_skill/1")
    again.close()
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


def _used(scratch: Scratch, job: str) -> Path:
    """A place after a trial, with the directories that every trial has, and what an agent left."""
    place = scratch.directory(job)
    (place / "home").mkdir(mode=0o700)
    (place / "tmp").mkdir(mode=0o700)
    for name in ("home/home/.claude/projects/here", "workspace/src/deep"):
        (place / name).mkdir(parents=True)
    for name in ("home/home/.claude/.credentials.json", "workspace/src/deep/file", "note"):
        (place / name).write_text("secret")
    (place / "workspace" / "link").symlink_to("/etc")
    return place


def _chmod(place: Path) -> None:
    (place / "workspace").chmod(0o777)


def _link(place: Path) -> None:
    outside = place.parent / "outside"
    (place / "workspace").rename(outside)
    (place / "workspace").symlink_to(outside)


def _attribute(place: Path) -> None:
    try:
        os.setxattr(place / "tmp", "user.left", b"here")
    except OSError:  # no attributes here
        _chmod(place)


def _many(place: Path) -> None:
    for number in range(600):
        (place / "workspace" / str(number)).touch()


def _nothing(_: Path) -> None: ...


def _alone(work: Callable[[], None]) -> None:
    """In a process that has no children but those of the work."""
    child = os.fork()
    if not child:
        try:
            work()
            os._exit(0)
        except BaseException:  # noqa: BLE001
            traceback.print_exc()
        finally:
            os._exit(1)
    assert os.waitpid(child, 0)[1] == 0


@pytest.mark.skipif(sys.platform != "linux", reason="orphans are adopted on Linux only")
@pytest.mark.parametrize("leave", [_nothing, _chmod, _link, _attribute, _many])
def test_an_emptied_place_serves_another_trial_if_it_is_as_it_was_made(
    tmp_path: Path, leave: Callable[[Path], None]
) -> None:
    _alone(lambda: _check_used_again(tmp_path, leave))


def _check_used_again(tmp_path: Path, leave: Callable[[Path], None]) -> None:
    scratch = Scratch(tmp_path / "scratch")
    with process_register(tmp_path / "register", own_process=True):
        place = _used(scratch, "a/claude/with_skill/1")
        leave(place)
        before = place.stat().st_ino
        work = scratch.set_aside("a/claude/with_skill/1")
        assert (work is None) == (leave is _nothing)
        if work is not None:
            work()
        assert place.exists() == (leave is _nothing)
        assert not list(scratch.directory("b/codex/with_skill/1").iterdir())
        assert not list(scratch.directory("u/claude/with_skill/1", unique=True).iterdir())
        again = scratch.directory("b/claude/with_skill/1")
        assert {str(found.relative_to(again)) for found in again.rglob("*")} == (
            {"home", "tmp", "home/home", "home/home/.claude", "workspace"}
            | {"home/home/.claude/projects", "home/home/.claude/projects/here"}
            if leave is _nothing
            else set()
        )
        assert (again.stat().st_ino == before) or leave is not _nothing
        # After a quiet trial, directories that have not changed are not looked into.
        for name in ("tmp", "workspace/new", "home") if leave is _nothing else ():
            for quiet in (True, False):
                time.sleep(0.15)
                if not quiet:
                    (again / name).mkdir(exist_ok=True)
                    (again / name / "file").touch()
                assert scratch.set_aside("b/claude/with_skill/1") is None
                assert scratch.directory("b/claude/with_skill/1") == again
                assert not [found for found in again.rglob("*") if found.is_file()]
                assert not (again / "workspace/new").exists()
        assert (place.parent / "outside" / "src").is_dir() == (leave is _link)
    remove_tree(place.parent)


@pytest.mark.skipif(sys.platform != "linux", reason="orphans are adopted on Linux only")
def test_a_place_where_a_process_may_still_work_serves_nobody(tmp_path: Path) -> None:
    _alone(lambda: _check_not_used_again(tmp_path))


def _check_not_used_again(tmp_path: Path) -> None:
    scratch = Scratch(tmp_path / "scratch")
    with process_register(tmp_path / "register", own_process=True):
        place = _used(scratch, "a/claude/with_skill/1")
        # Without its environment and in a session of its own: it comes to us as an orphan.
        run = "env -i setsid sh -c 'echo; exec sleep 60' &"
        with subprocess.Popen(["sh", "-c", run], cwd=place, stdout=subprocess.PIPE) as child:
            assert child.stdout is not None
            child.stdout.readline()
            child.terminate()
            child.wait()
            work = scratch.set_aside("a/claude/with_skill/1")
            assert work is not None
            work()
            assert not list(scratch.directory("b/claude/with_skill/1").iterdir())
            [orphan] = own_children() or {0}
            os.kill(orphan, signal.SIGKILL)
    scratch.close()
    assert not place.parent.exists()
