"""BlobStore: each content once, whole, for any number of writers."""

from __future__ import annotations

import hashlib
import threading
from pathlib import Path

import pytest

from skillup.schema.record import FileState
from skillup.workspace.snapshot import BlobStore


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
