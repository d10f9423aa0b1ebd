"""Copies of homes: the home is put back exactly, and a copy that is not whole is not taken."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from skillup.trial.state_backup import HomeCopies, workspace_signature


@pytest.fixture
def home(tmp_path: Path) -> Path:
    home = tmp_path / "home"
    files = {
        "home/.claude/projects/x/s.jsonl": "one\n",
        "home/.claude/.credentials.json": "token",
        "home/.codex/auth.json": "token",
        "home/.codex/logs_2.sqlite": "log",
        "home/.codex/state_5.sqlite": "state",
        "home/.cache/big": "cached",
        "tmp/out": "x",
        "home/read-only": "r",
    }
    for name, text in files.items():
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text(text)
    (home / "home/read-only").chmod(0o400)
    (home / "home/link").symlink_to("read-only")
    (home / "home/empty").mkdir()
    return home


def shown(root: Path) -> dict[str, str]:
    return {
        str(path.relative_to(root)): str(path.readlink())
        if path.is_symlink()
        else path.read_text()
        if path.is_file()
        else "/"
        for path in sorted(root.rglob("*"))
    }


def test_logins_and_caches_are_not_copied_and_the_copy_is_the_users_alone(home: Path) -> None:
    copies = HomeCopies(home, home.parent)
    copy = copies.take()
    assert copy is not None
    target = home.parent / "checkpoint" / copy.slot
    names = {name for name, text in shown(target).items() if text != "/"}
    assert names == {
        "home/.claude/projects/x/s.jsonl",
        "home/.codex/state_5.sqlite",
        "home/read-only",
        "home/link",
    }
    assert target.stat().st_mode & 0o077 == 0
    assert target.parent.stat().st_mode & 0o077 == 0


def test_the_home_is_put_back_and_logins_stay_as_they_are_now(home: Path) -> None:
    copies = HomeCopies(home, home.parent)
    before = shown(home)
    copy = copies.take()
    assert copy is not None
    (home / "home/.claude/projects/x/s.jsonl").write_text("one\ntwo\n")
    (home / "home/.claude/.credentials.json").write_text("renewed")
    (home / "home/read-only").unlink()
    (home / "home/read-only").mkdir()
    (home / "home/read-only/deep").write_text("x")
    (home / "home/link").unlink()
    (home / "home/empty").rmdir()
    (home / "new/deep").mkdir(parents=True)
    (home / "new/deep/file").write_text("x")
    copies.put_back(copy)
    assert shown(home) == {**before, "home/.claude/.credentials.json": "renewed"}
    assert (home / "home/read-only").stat().st_mode & 0o777 == 0o400


def test_a_pinned_copy_is_not_overwritten(home: Path) -> None:
    copies = HomeCopies(home, home.parent)
    session = home / "home/.claude/projects/x/s.jsonl"
    first = copies.take()
    assert first is not None
    copies.pin(first)
    latest = first
    for text in ("2", "3", "4"):
        session.write_text(text)
        taken = copies.take()
        assert taken is not None
        assert taken.slot != first.slot
        latest = taken
    copies.put_back(first)
    assert session.read_text() == "one\n"
    copies.put_back(latest)
    assert session.read_text() == "4"


def test_another_process_finds_it_only_if_it_is_whole(home: Path) -> None:
    copy = HomeCopies(home, home.parent).take()
    assert copy is not None
    assert HomeCopies(home, home.parent).find(copy.slot, copy.sha256) is not None
    assert HomeCopies(home, home.parent).find("../home", copy.sha256) is None
    session = home.parent / "checkpoint" / copy.slot / "home/.claude/projects/x/s.jsonl"
    session.write_text("tw\n!")
    assert HomeCopies(home, home.parent).find(copy.slot, copy.sha256) is None


def test_copies_follow_each_other_whatever_has_changed(home: Path) -> None:
    copies = HomeCopies(home, home.parent)
    for number in range(6):
        (home / "home/.codex/state_5.sqlite").write_text(f"state {number}")
        (home / f"home/n{number}").write_text("x")
        (home / f"home/n{number - 1}").unlink(missing_ok=True)
        copy = copies.take()
        assert copy is not None
        copies.pin(copy)
        target = shown(home.parent / "checkpoint" / copy.slot)
        assert target["home/.codex/state_5.sqlite"] == f"state {number}"
        assert [name for name in target if name.startswith("home/n")] == [f"home/n{number}"]


def test_a_workspace_that_was_touched_has_another_signature(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / "a").write_text("a")
    (tmp_path / ".git/index").write_text("i")
    first = workspace_signature(tmp_path)
    assert first is not None
    os.utime(tmp_path / ".git/index", ns=(1, 1))
    (tmp_path / ".git/index.lock").touch()
    (tmp_path / ".git/index.lock").unlink()
    assert workspace_signature(tmp_path) == first
    for change in (
        lambda: (tmp_path / "a").write_text("b"),
        lambda: (tmp_path / "a").chmod(0o700),
        lambda: (tmp_path / "new").mkdir(),
        lambda: (tmp_path / ".git/HEAD").write_text("x"),
    ):
        before = workspace_signature(tmp_path)
        change()
        assert workspace_signature(tmp_path) != before


def test_a_workspace_that_is_gone_or_was_replaced_has_none(tmp_path: Path) -> None:
    assert workspace_signature(tmp_path / "gone") is None
    (tmp_path.parent / "link").symlink_to(tmp_path)
    assert workspace_signature(tmp_path.parent / "link") is None
