"""write_atomic: the old file or the new one, nothing between."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

import pytest

from skillup.errors import RunDirectoryError
from skillup.store.files import (
    make_directory,
    remove_temporary_files,
    set_aside,
    write_atomic,
)


def test_a_file_is_replaced_and_nothing_else_is_left(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    write_atomic(path, b"old")
    write_atomic(path, b"new")
    assert path.read_bytes() == b"new"
    assert list(tmp_path.iterdir()) == [path]


def test_a_missing_directory_is_an_error_with_the_path_in_it(tmp_path: Path) -> None:
    with pytest.raises(RunDirectoryError, match=r"cannot write .*nowhere/a"):
        write_atomic(tmp_path / "nowhere" / "a", b"x")


def test_when_the_disk_takes_no_more_the_old_file_stays(tmp_path: Path) -> None:
    path = tmp_path / "record.json"
    path.write_bytes(b"old")
    # A limit on the size of files stands in for a full disk: both fail in the middle of a write.
    program = f"""
import resource
from pathlib import Path
from skillup.errors import RunDirectoryError
from skillup.store.files import write_atomic
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
try:
    write_atomic(Path({str(path)!r}), b"x" * 100_000)
except RunDirectoryError as error:
    print(error.hint)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert "limit" in done.stdout, done.stderr
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_readers_never_see_a_half_written_file(tmp_path: Path) -> None:
    path = tmp_path / "a"
    contents = [bytes([65 + n]) * 50_000 for n in range(4)]
    write_atomic(path, contents[0])
    stop = threading.Event()
    seen: list[bytes] = []

    def read() -> None:
        while not stop.is_set():
            seen.append(path.read_bytes())

    reader = threading.Thread(target=read)
    reader.start()
    writers = [threading.Thread(target=write_atomic, args=(path, c)) for c in contents * 3]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    stop.set()
    reader.join()
    assert set(seen) <= set(contents)


def test_what_killed_writers_left_can_be_removed(tmp_path: Path) -> None:
    leftover = tmp_path / ".record.json.0123.skillup-tmp"
    leftover.write_bytes(b"half")
    (tmp_path / ".keep").touch()
    remove_temporary_files(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [".keep"]


def test_set_aside_takes_the_first_free_number(tmp_path: Path) -> None:
    path = tmp_path / "record.json"
    for number in (1, 2):
        path.write_text(str(number))
        assert set_aside(path, "damaged").name == f"record.json.damaged-{number}"
    assert (tmp_path / "record.json.damaged-1").read_text() == "1"


def test_a_file_in_the_way_of_a_directory_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(RunDirectoryError, match="cannot make"):
        make_directory(tmp_path / "file" / "below")
