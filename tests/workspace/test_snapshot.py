"""Snapshots: what is in a workspace, its contents as blobs, and what a turn did to it."""

from __future__ import annotations

import asyncio
import hashlib
import os
import subprocess
import sys
import weakref
import zlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skillup.schema.record import FileState, WorkspaceChanges
from skillup.store import RunDirectory
from skillup.workspace.snapshot import (
    BlobStore,
    SnapshotLimits,
    diff_snapshots,
    take_snapshot,
    unified_diff,
)
from tests.support.stored import change
from tests.support.trees import make_tree


@pytest.fixture
def run(tmp_path: Path) -> Iterator[RunDirectory]:
    with RunDirectory.create(tmp_path / "run", {}) as made:
        yield made


@pytest.fixture
def blobs(run: RunDirectory) -> BlobStore:
    return run.blobs


def sha(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def test_files_links_and_modes_are_seen_and_contents_kept(tmp_path: Path, blobs: BlobStore) -> None:
    """S6: the record does not tell whether a link's target is there."""
    names = ["with space", "Grüße 你好", "new\nline", "-rf", "*"]
    root = make_tree(tmp_path / "w", {"b/x.sh": "run", "a": b"\0\xff", "x.git/y": ""})
    make_tree(root, {".git/HEAD": "", "sub/.git/HEAD": "", ".gitignore": "", "w/.git": ""})
    make_tree(root, {f"{name}/{name}": "x" for name in names})
    (root / "b" / "x.sh").chmod(0o755)
    links = {"good": "./a", "gone": "b/none", "circle": "circle", "out": str(tmp_path)}
    for name, target in links.items():
        os.symlink(target, root / name)  # noqa: PTH211 - as it is written
    (root / "empty").mkdir()
    os.mkfifo(root / "pipe")
    no_utf8 = sys.platform != "darwin"  # its file systems have UTF-8 names only
    if no_utf8:
        (root / os.fsdecode(b"\xff.txt")).write_text("x")

    snapshot = take_snapshot(root, blobs)

    states = {
        "a": FileState(sha256=sha(b"\0\xff"), size=2),
        "b/x.sh": FileState(sha256=sha(b"run"), size=3, executable=True),
        **dict.fromkeys([".gitignore", "w/.git", "x.git/y"], FileState(sha256=sha(b""), size=0)),
    }
    odd = [f"{name}/{name}" for name in names] + [r"\xff.txt"] * no_utf8
    states |= dict.fromkeys(odd, FileState(sha256=sha(b"x"), size=1))
    found = {path: state for path, state in snapshot.files.items() if state.link is None}
    assert found == states
    assert list(snapshot.files) == sorted(snapshot.files)
    assert {name: snapshot.files[name].link for name in links} == links
    dangling = {name: snapshot.files[name].dangling for name in links}
    assert dangling == {"good": False, "gone": True, "circle": True, "out": False}
    assert snapshot.notes == ("pipe is a FIFO, socket or device; it was left out",)
    assert snapshot.unseen == ("pipe",)
    assert blobs.read_state(snapshot.files["a"]) == b"\0\xff"


def test_what_cannot_be_read_is_there_but_has_no_hash(tmp_path: Path, blobs: BlobStore) -> None:
    root = make_tree(tmp_path / "w", {"closed": "x", "locked/file": "y", "open": "z"})
    (root / "closed").chmod(0)
    (root / "locked").chmod(0)
    if os.access(root / "closed", os.R_OK):  # root may read everything
        return
    snapshot = take_snapshot(root, blobs)
    (root / "locked").chmod(0o755)
    assert snapshot.files["closed"] == FileState(sha256=None, size=1, kept=False)
    assert "open" in snapshot.files
    assert [note.split(" could")[0] for note in snapshot.notes] == ["closed", "locked/"]


def test_limits_are_noted_and_hashes_still_told(tmp_path: Path, blobs: BlobStore) -> None:
    root = make_tree(tmp_path / "w", {"a": "x" * 10, "b": "y" * 60, "c": "z" * 60, "d": "d" * 500})
    with (root / "huge").open("wb") as file:
        file.truncate(1 << 40)
    limits = SnapshotLimits(kept_file=100, kept_total=100, read_total=1000)
    snapshot = take_snapshot(root, blobs, limits=limits)
    assert {path: state.kept for path, state in snapshot.files.items()} == {
        "a": True,
        "b": True,
        "c": False,
        "d": False,
        "huge": False,
    }
    assert snapshot.files["d"].sha256 == sha(b"d" * 500)
    assert snapshot.files["huge"].sha256 is None
    assert blobs.get(sha(b"z" * 60)) is None
    assert len(snapshot.notes) == 4


def test_no_more_is_read_than_the_limits_allow(tmp_path: Path, blobs: BlobStore) -> None:
    """S12: 40 sparse files of 1 GiB took 52 s, outside the turn's limit."""
    root = make_tree(tmp_path / "w", {"small": "x"})
    for number in range(40):
        with (root / f"{number:02}.img").open("wb") as file:
            file.truncate((1 << 30) if number < 20 else 1000)
    limits = SnapshotLimits(read_total=5001)

    before = take_snapshot(root, blobs, limits=SnapshotLimits(read_total=20_001))
    snapshot = take_snapshot(root, blobs, limits=limits)
    changes = diff_snapshots(before, snapshot, blobs)

    read = [path for path, state in snapshot.files.items() if state.sha256 is not None]
    assert read == [f"{number}.img" for number in range(20, 25)] + ["small"]
    assert {snapshot.files[f"{number:02}.img"].size for number in range(20)} == {1 << 30}
    assert any("35 files were not read" in note for note in snapshot.notes)
    assert changes.modified == [], "what was not read this time may be what it was"


def test_a_snapshot_that_nobody_wants_any_more_is_given_up(
    tmp_path: Path, blobs: BlobStore
) -> None:
    """S12: Ctrl-C had to wait for it."""
    root = make_tree(tmp_path / "w", {f"{number}": "x" for number in range(9)})
    asked: list[bool] = []

    def stop() -> bool:
        asked.append(len(asked) == 4)
        return asked[-1]

    with pytest.raises(InterruptedError):
        take_snapshot(root, blobs, stop=stop)
    assert len(asked) == 5


def test_a_file_that_changes_within_the_same_tick_is_read_again(
    tmp_path: Path, blobs: BlobStore
) -> None:
    root = make_tree(tmp_path / "w", {"a": "old"})
    status = (root / "a").stat()
    first = take_snapshot(root, blobs)
    (root / "a").write_text("new")
    os.utime(root / "a", ns=(status.st_atime_ns, status.st_mtime_ns))
    assert take_snapshot(root, blobs, first).files["a"].sha256 == sha(b"new")


def test_a_file_that_has_long_been_as_it_was_is_not_read_again(tmp_path: Path) -> None:
    root = make_tree(tmp_path / "w", {"a": "same"})
    first = take_snapshot(root, BlobStore())
    # Three seconds after the file's last change its times can be trusted.
    first = replace(first, started_ns=first.started_ns + 3_000_000_000)
    blobs = BlobStore()  # it would be stored here if it were read
    second = take_snapshot(root, blobs, first)
    assert second.files == first.files
    assert blobs.get(sha(b"same")) is None
    (root / "a").write_text("else")
    assert take_snapshot(root, blobs, second).files["a"].sha256 == sha(b"else")


def test_a_workspace_that_is_gone_or_became_a_link_is_an_error(
    tmp_path: Path, blobs: BlobStore
) -> None:
    with pytest.raises(FileNotFoundError):
        take_snapshot(tmp_path / "missing", blobs)
    elsewhere = make_tree(tmp_path / "elsewhere", {"private.txt": "x"})
    (tmp_path / "w").symlink_to(elsewhere)
    with pytest.raises(NotADirectoryError):
        take_snapshot(tmp_path / "w", blobs)


# Each content once, whole, for any number of writers.


def test_a_content_is_stored_once_however_many_threads_have_it_and_what_is_not_kept_is_none(
    run: RunDirectory,
) -> None:
    contents = [bytes([number]) * 100_000 for number in range(10)]

    keep = run.begin_trial("a").keep_artifact

    def put_all(_: int) -> None:
        for content in contents:
            assert run.blobs.get(run.blobs.put(content)) == content
            keep("name", content)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(put_all, range(8)))
    kept = [key.hex() for (key,) in run.database.rows("SELECT sha256 FROM blobs")]
    assert sorted(kept) == sorted(map(sha, contents))
    name = sha(contents[1])
    assert run.blobs.get(name) == contents[1]
    assert run.blobs.get("0" * 64) is None
    assert run.blobs.read_state(FileState(sha256=name, size=1)) == contents[1]
    assert run.blobs.read_state(FileState(sha256=name, size=1, kept=False)) is None
    assert run.blobs.read_state(FileState(sha256=None, size=1, link="x")) is None


@pytest.mark.parametrize("damage", [b"", b"y", zlib.compress(b""), zlib.compress(b"y")])
def test_a_damaged_blob_is_never_handed_out(run: RunDirectory, damage: bytes) -> None:
    name = run.blobs.put(b"x")
    run.close()
    change(run.path, "UPDATE blobs SET data = ?", damage)
    assert RunDirectory.open(run.path).blobs.get(name) is None


# What a turn did to the workspace.


class Workspace:
    """A directory, its blobs, and the changes since it was looked at last."""

    def __init__(self, tmp_path: Path, blobs: BlobStore) -> None:
        self.root = make_tree(tmp_path / "w", {"a.txt": "one\ntwo\n", "gone.txt": "bye\n"})
        self.blobs = blobs
        self.limits = SnapshotLimits(read_total=1 << 21)
        self.last = take_snapshot(self.root, self.blobs, None, self.limits)

    def changes(self) -> WorkspaceChanges:
        after = take_snapshot(self.root, self.blobs, self.last, self.limits)
        changes = diff_snapshots(self.last, after, self.blobs)
        self.last = after
        return changes


@pytest.fixture
def workspace(tmp_path: Path, blobs: BlobStore) -> Workspace:
    return Workspace(tmp_path, blobs)


def test_added_modified_and_deleted_files_with_their_diff(workspace: Workspace) -> None:
    make_tree(workspace.root, {"a.txt": "one\n2\n", "z/new.txt": "hello", "b.txt": ""})
    (workspace.root / "gone.txt").unlink()
    changes = workspace.changes()
    assert changes.added == ["b.txt", "z/new.txt"]
    assert changes.modified == ["a.txt"]
    assert changes.deleted == ["gone.txt"]
    assert changes.diff.splitlines() == [
        "--- a/a.txt",
        "+++ b/a.txt",
        "@@ -1,2 +1,2 @@",
        " one",
        "-two",
        "+2",
        "--- /dev/null",
        "+++ b/b.txt",
        "--- a/gone.txt",
        "+++ /dev/null",
        "@@ -1 +0,0 @@",
        "-bye",
        "--- /dev/null",
        "+++ b/z/new.txt",
        "@@ -0,0 +1 @@",
        "+hello",
        "\\ No newline at end of file",
    ]


def test_modes_and_links_are_compared_and_binary_files_named_only(workspace: Workspace) -> None:
    (workspace.root / "a.txt").chmod(0o755)
    (workspace.root / "link").symlink_to("a.txt")
    make_tree(workspace.root, {"x.bin": b"\0\1", "x\n--- a/y": "1\n"})
    changes = workspace.changes()
    assert (changes.modified, changes.added) == (["a.txt"], ["link", "x\n--- a/y", "x.bin"])
    assert "[now executable]" in changes.diff
    assert "+++ b/x.bin\n[nothing → 2 bytes; not shown" in changes.diff
    assert r"+++ 'b/x\n--- a/y'" in changes.diff.splitlines()  # cannot forge lines

    (workspace.root / "link").unlink()
    (workspace.root / "link").symlink_to("b.txt")
    changes = workspace.changes()
    assert changes.modified == ["link"]
    assert "symbolic link to 'a.txt' → symbolic link to 'b.txt'" in changes.diff
    (workspace.root / "link").unlink()
    make_tree(workspace.root, {"link": "a.txt"})
    assert workspace.changes().modified == ["link"]
    assert workspace.changes() == WorkspaceChanges()


def test_a_file_too_large_to_be_hashed_is_compared_by_its_times(workspace: Workspace) -> None:
    with (workspace.root / "huge").open("wb") as file:
        file.truncate(3 << 21)
    workspace.changes()
    os.utime(workspace.root / "huge", (2, 2))
    assert workspace.changes().modified == ["huge"]
    assert workspace.changes().modified == []


def test_a_long_diff_is_cut_and_says_so(workspace: Workspace) -> None:
    make_tree(workspace.root, {"long.txt": "line\n" * 20_000})
    diff = workspace.changes().diff
    assert len(diff) < 66_000
    assert diff.endswith("[the diff goes on; cut at 65536 characters]\n")


LINES = st.lists(st.sampled_from(["a\n", "b\n", "c\r\n", "\n", "\f\n", "d"]), max_size=30)


@settings(max_examples=25, deadline=None)
@given(LINES, LINES)
def test_git_can_apply_every_diff(
    tmp_path_factory: pytest.TempPathFactory, a: list[str], b: list[str]
) -> None:
    before, after = "".join(a), "".join(b)
    lines = list(unified_diff(before, after))
    assert bool(lines) == (before != after)
    if not before or not after or not lines:
        return
    directory = tmp_path_factory.mktemp("apply")
    (directory / "f").write_bytes(before.encode())
    patch = "\n".join(["--- a/f", "+++ b/f", *lines, ""])
    subprocess.run(
        ["git", "apply", "--unidiff-zero", "--whitespace=nowarn", "-"],
        input=patch.encode(),
        cwd=directory,
        check=True,
        capture_output=True,
    )
    assert (directory / "f").read_bytes() == after.encode()


def test_large_texts_are_compared_quickly_and_a_line_added_to_one_is_a_small_diff() -> None:
    before = "".join(f"{number}\n" for number in range(20_000))
    after = "".join(f"{number}\n" for number in reversed(range(20_000)))
    lines = list(unified_diff(f"x\n{before}y\n", f"x\n{after}y\n"))
    assert lines == ["[lines 2 to 20002 changed: too many to be shown]"]
    lines = list(unified_diff(before, f"{before}new\n"))
    assert lines == ["@@ -19998,3 +19998,4 @@", " 19997", " 19998", " 19999", "+new"]


def test_many_files_are_forgotten_bit_by_bit_where_others_wait(tmp_path: Path) -> None:
    make_tree(tmp_path, {f"{number}.txt": "" for number in range(1_000)})
    left: weakref.WeakSet[object] = weakref.WeakSet()

    def forget() -> None:
        more: dict[str, Any] = {str(number): frozenset({number}) for number in range(10_000)}
        left.update(more.values())
        take_snapshot(tmp_path, BlobStore()).files.update(more)

    async def among_others() -> list[int]:
        forget()
        return [len(left) for _ in range(10) if await asyncio.sleep(0, result=True)]

    forget()
    assert not left
    seen = asyncio.run(among_others())
    assert seen[-1] == 0 < seen[0] < 10_000
    assert len(set(seen)) > 3
