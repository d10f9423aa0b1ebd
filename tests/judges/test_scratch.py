"""Directories of judges: removed at the end, or by the next start after a kill; nothing else is."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from skillup.judges.scratch import judge_scratch, remove_abandoned

KILLED = """
import os, pathlib, signal, stat
from skillup.judges.scratch import judge_scratch
with judge_scratch() as path:
    sealed = pathlib.Path(path) / "workspace" / "sealed"
    sealed.mkdir(parents=True)
    (sealed / "a.txt").write_text("a")
    (sealed / "out").symlink_to(os.environ["OUTSIDE"])
    sealed.chmod(0o500)
    sealed.parent.chmod(0)
    print(path, flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    place = tmp_path / "tmp"
    place.mkdir()
    monkeypatch.setenv("TMPDIR", str(place))
    monkeypatch.setattr(tempfile, "tempdir", None)
    return place


def test_a_directory_that_is_in_use_stays_and_goes_at_its_end(temporary: Path) -> None:
    with judge_scratch() as path:
        assert remove_abandoned() == []
        assert Path(path).is_dir()
    assert list(temporary.iterdir()) == []


def test_what_a_killed_skillup_left_is_removed_and_what_it_links_to_is_not(
    tmp_path: Path, temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir(mode=0o500)
    monkeypatch.setenv("OUTSIDE", str(outside))
    done = subprocess.run(
        [sys.executable, "-c", KILLED], capture_output=True, text=True, timeout=60, check=False
    )
    left = Path(done.stdout.strip())
    assert left.is_dir()

    assert remove_abandoned() == [left]

    assert list(temporary.iterdir()) == []
    assert outside.stat().st_mode & 0o777 == 0o500


def test_what_has_not_our_mark_is_left_alone(tmp_path: Path, temporary: Path) -> None:
    name, mark = "skillup-judge-", ".skillup-judge-scratch"
    (temporary / f"{name}bare").mkdir()
    (temporary / f"{name}other").mkdir()
    (temporary / f"{name}other" / mark).write_text("something else")
    (temporary / f"{name}file").write_text("")
    with judge_scratch() as path:
        content = (Path(path) / mark).read_bytes()
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / mark).write_bytes(content)
    (temporary / f"{name}link").symlink_to(elsewhere)
    (temporary / f"{name}linked-mark").mkdir()
    (temporary / f"{name}linked-mark" / mark).symlink_to(elsewhere / mark)
    (temporary / "other-name").mkdir()
    (temporary / "other-name" / mark).write_bytes(content)
    before = sorted(temporary.rglob("*"))

    assert remove_abandoned() == []
    assert sorted(temporary.rglob("*")) == before
    assert (elsewhere / mark).is_file()
