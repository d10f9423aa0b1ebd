"""BlobStore: each content once, whole, for any number of writers."""

from __future__ import annotations

import hashlib
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from skillup.schema.record import FileState
from skillup.workspace.blobs import BlobStore


def test_the_same_content_is_stored_once_and_what_is_not_kept_is_none(tmp_path: Path) -> None:
    blobs = BlobStore(tmp_path / "blobs")
    assert blobs.get("0" * 64) is None
    sha = blobs.put(b"x")
    assert sha == hashlib.sha256(b"x").hexdigest()
    assert blobs.path_of(sha) == tmp_path / "blobs" / sha[:2] / sha
    inode = blobs.path_of(sha).stat().st_ino
    assert blobs.put(b"x") == sha
    assert blobs.path_of(sha).stat().st_ino == inode
    assert len([path for path in (tmp_path / "blobs").rglob("*") if path.is_file()]) == 1
    assert blobs.read_state(FileState(sha256=sha, size=1)) == b"x"
    assert blobs.read_state(FileState(sha256=sha, size=1, kept=False)) is None
    assert blobs.read_state(FileState(sha256=None, size=1, link="x")) is None


@pytest.mark.parametrize("damage", [b"", b"y"])
def test_a_damaged_blob_is_never_handed_out_and_a_cut_one_is_mended(
    tmp_path: Path, damage: bytes
) -> None:
    blobs = BlobStore(tmp_path / "blobs")
    sha = blobs.put(b"x")
    blobs.path_of(sha).write_bytes(damage)
    assert blobs.get(sha) is None
    blobs.path_of(sha).write_bytes(b"")
    blobs.put(b"x")
    assert blobs.get(sha) == b"x"


def test_threads_may_store_the_same_content_at_once(tmp_path: Path) -> None:
    blobs = BlobStore(tmp_path / "blobs")
    contents = [bytes([number]) * 100_000 for number in range(10)]
    failures: list[BaseException] = []

    def put_all() -> None:
        try:
            for content in contents:
                blobs.put(content)
            blobs.sync()
        except BaseException as error:  # noqa: BLE001 - reported by the test's own thread
            failures.append(error)

    threads = [threading.Thread(target=put_all) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    files = [path for path in (tmp_path / "blobs").rglob("*") if path.is_file()]
    assert sorted(path.name for path in files) == sorted(
        hashlib.sha256(content).hexdigest() for content in contents
    )


def test_processes_that_are_killed_leave_no_half_blob(tmp_path: Path) -> None:
    program = f"""
from pathlib import Path
from skillup.workspace.blobs import BlobStore
blobs = BlobStore(Path({str(tmp_path / "blobs")!r}))
print("ready", flush=True)
for number in range(100_000):
    blobs.put(str(number % 200).encode() * 200_000)
"""
    for round_number in range(3):
        with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE) as writer:
            assert writer.stdout is not None
            assert writer.stdout.read(5) == b"ready"
            time.sleep(0.05 * round_number)
            writer.kill()
    blobs = BlobStore(tmp_path / "blobs")
    blobs.remove_temporary_files()
    for path in (tmp_path / "blobs").rglob("*"):
        assert path.is_dir() or blobs.get(path.name) is not None
