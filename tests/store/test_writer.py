"""Whether somebody writes a run, asked without getting in their way."""

from __future__ import annotations

import os
from pathlib import Path

from skillup.store import RunDirectory
from skillup.store.runs import writer_of


def test_the_holder_of_the_lock_is_known_and_not_disturbed(tmp_path: Path) -> None:
    path = tmp_path / "r"
    assert writer_of(path) is None
    with RunDirectory.create(path, {}):
        assert writer_of(path) == os.getpid()
    with RunDirectory.open(path, writable=True):
        assert writer_of(path) == os.getpid()


def test_a_process_that_began_later_is_another_one(tmp_path: Path) -> None:
    with RunDirectory.create(tmp_path / "r", {}):
        os.utime(tmp_path / "r/lock", (1_000_000, 1_000_000))
        assert writer_of(tmp_path / "r") is None


def test_what_is_no_number_is_nobody(tmp_path: Path) -> None:
    for content in ("", "x", "-1", "999999999", "1e9"):
        (tmp_path / "lock").write_text(content)
        assert writer_of(tmp_path) is None
