"""Where runs are, in which order, who writes them, and job ids as directories."""

from __future__ import annotations

import os
import subprocess
import sys
import zlib
from pathlib import Path, PurePosixPath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillup.errors import RunDirectoryError
from skillup.store import RunDirectory, default_run_path, new_run_id
from skillup.store.places import directory_of_job, is_being_written, runs_in, take_lock
from tests.support.stored import change


def test_runs_are_under_dot_skillup_and_git_does_not_see_them(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    path = default_run_path(tmp_path, new_run_id())
    assert path.parent == tmp_path / ".skillup" / "runs"
    RunDirectory.create(path, {}).close()
    status = ["git", "-C", str(tmp_path), "status", "--porcelain"]
    assert subprocess.run(status, capture_output=True, check=True).stdout == b""
    ignore = tmp_path / ".skillup" / ".gitignore"
    ignore.write_text("runs/\n")
    default_run_path(tmp_path, "b")
    assert ignore.read_text() == "runs/\n"


def a_run(folder: Path, name: str, **info: object) -> str:
    RunDirectory.create(folder / name, info).close()
    return name


def test_runs_are_in_the_order_of_their_start_and_what_is_no_run_is_left_out(
    tmp_path: Path,
) -> None:
    """As the nights of docs/nightly.md, which else would come after all runs by day."""
    in_order = [
        *(a_run(tmp_path, f"odd{n}", started_at=at) for n, at in enumerate(["", "soon", 3])),
        a_run(tmp_path, "zzz"),
        a_run(tmp_path, "20260101T000000Z-000aaa"),
        a_run(tmp_path, "night", run_id="x", started_at="2026-01-01T00:00:00.500Z"),
        a_run(tmp_path, "20260101T000000Z-900aaa"),
        a_run(tmp_path, "another", run_id="y", started_at="2026-01-02T00:00:00.000Z"),
        a_run(tmp_path, "20260103T000000Z-000aaa"),
    ]
    (tmp_path / "notes").mkdir()
    (tmp_path / "file").write_text("")
    assert runs_in(tmp_path) == in_order
    assert runs_in(tmp_path / "nowhere") == runs_in(tmp_path / "file") == []


@pytest.mark.parametrize("damage", ["", "{", "[]", "[" * 200_000])
def test_what_a_run_says_of_itself_may_be_damaged(tmp_path: Path, damage: str) -> None:
    RunDirectory.create(tmp_path / "run", {"jobs": ["a"]}).close()
    sql = "UPDATE run SET json = ? WHERE name = 'info'"
    change(tmp_path / "run", sql, zlib.compress(damage.encode()))
    with pytest.raises(RunDirectoryError, match=r"of the run is damaged"):
        RunDirectory.open(tmp_path / "run").run_info()


@pytest.mark.parametrize(
    ("job", "directory"),
    [
        (
            "Delete-with_confirmation.v2/x/with_skill/1",
            "Delete-with_confirmation.v2/x/with_skill/1",
        ),
        *(("../x", "%2E./x"), (".", "%2E"), ("a b", "a%20b"), ("-rf", "-rf"), ("", "%")),
        *(("/etc", "%/etc"), ("raw/files", "%72aw/%66iles"), ("~x", "%7Ex")),
    ],
)
def test_odd_parts_of_job_ids_are_encoded(job: str, directory: str) -> None:
    assert directory_of_job(job) == directory


@given(st.sets(st.text(st.characters(exclude_categories=()), max_size=60), max_size=4))
def test_every_job_id_has_a_safe_directory_of_its_own(jobs: set[str]) -> None:
    directories = [directory_of_job(job) for job in jobs]
    assert len(set(directories)) == len(jobs)
    for directory in directories:
        assert directory.isascii()
        parts = directory.split("/")
        assert all(0 < len(part) <= 120 and not part.startswith(".") for part in parts)
        assert ".." not in PurePosixPath(directory).parts


def test_the_second_writer_is_refused_by_name_and_a_killed_one_is_in_nobodys_way(
    tmp_path: Path,
) -> None:
    path = tmp_path / "run"
    program = (
        "import sys; from pathlib import Path; from skillup.store import RunDirectory;"
        f"run = RunDirectory.create(Path({str(path)!r}), {{}}); print(1, flush=True); input()"
    )
    assert not is_being_written(path)
    with subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as writer:
        assert writer.stdout is not None
        writer.stdout.readline()
        with pytest.raises(RunDirectoryError, match="is being written") as caught:
            RunDirectory.open(path, writable=True)
        assert f"process {writer.pid}" in caught.value.message
        assert f"process {writer.pid}" in (caught.value.hint or "")
        assert RunDirectory.open(path).run_info() == {"jobs": []}
        assert is_being_written(path)
        writer.kill()
    assert not is_being_written(path)
    with RunDirectory.open(path, writable=True):
        with pytest.raises(RunDirectoryError, match="is being written"):
            take_lock(path / "lock")
        assert is_being_written(path)


def test_who_only_looks_keeps_no_writer_out(tmp_path: Path) -> None:
    program = (
        "import sys; from pathlib import Path; from skillup.store.places import is_being_written\n"
        "print(1, flush=True)\n"
        "while True: is_being_written(Path(sys.argv[1]))"
    )
    os.close(take_lock(tmp_path / "lock"))
    command = [sys.executable, "-c", program, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as looking:
        assert looking.stdout is not None
        looking.stdout.readline()
        try:
            for _ in range(200):
                os.close(take_lock(tmp_path / "lock"))
        finally:
            looking.kill()
