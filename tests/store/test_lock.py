"""Two processes never write the same run."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from skillup.errors import RunDirectoryError
from skillup.store import RunDirectory
from skillup.store.lock import RunLock

HOLDER = """
import sys, time
from pathlib import Path
from skillup.store.lock import RunLock
lock = RunLock(Path(sys.argv[1]))
print("locked", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def holder(tmp_path: Path) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(tmp_path / "lock")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "locked\n"
    return process


def end(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.communicate()


def test_the_second_is_told_who_has_it(tmp_path: Path, holder: subprocess.Popen[str]) -> None:
    with pytest.raises(RunDirectoryError) as caught:
        RunLock(tmp_path / "lock")
    assert f"process {holder.pid}" in caught.value.message
    assert f"process {holder.pid}" in (caught.value.hint or "")
    end(holder)


def test_a_killed_holder_is_in_nobodys_way(tmp_path: Path, holder: subprocess.Popen[str]) -> None:
    end(holder)
    lock = RunLock(tmp_path / "lock")
    with pytest.raises(RunDirectoryError):
        RunLock(tmp_path / "lock")
    lock.release()


def test_a_run_that_is_being_written_can_be_read(tmp_path: Path) -> None:
    with RunDirectory.create(tmp_path / "run", {"run_id": "r"}):
        assert RunDirectory.open(tmp_path / "run").run_info() == {"run_id": "r"}
        with pytest.raises(RunDirectoryError, match="is being written"):
            RunDirectory.open(tmp_path / "run", writable=True)
    RunDirectory.open(tmp_path / "run", writable=True).close()
