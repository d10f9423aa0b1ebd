"""Where runs are kept by default."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

from skillup.store import RunDirectory, default_run_path, new_run_id


def test_runs_are_under_dot_skillup_and_git_does_not_see_them(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    path = default_run_path(tmp_path, new_run_id())
    assert path.parent == tmp_path / ".skillup" / "runs"
    RunDirectory.create(path, {}).close()
    status = ["git", "-C", str(tmp_path), "status", "--porcelain"]
    assert subprocess.run(status, capture_output=True, check=True).stdout == b""


def test_an_edited_gitignore_is_left_as_it_is(tmp_path: Path) -> None:
    default_run_path(tmp_path, "a")
    ignore = tmp_path / ".skillup" / ".gitignore"
    ignore.write_text("runs/\n")
    default_run_path(tmp_path, "b")
    assert ignore.read_text() == "runs/\n"


def test_ids_are_different_even_in_the_same_second() -> None:
    assert len({new_run_id() for _ in range(20)}) == 20


def test_ids_sort_in_their_order_within_a_second() -> None:
    ids = []
    for _ in range(5):
        ids.append(new_run_id())
        time.sleep(0.002)
    assert ids == sorted(ids)
