"""What a turn did to the workspace."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skillup.schema.record import WorkspaceChanges
from skillup.workspace.snapshot import (
    BlobStore,
    SnapshotLimits,
    diff_snapshots,
    take_snapshot,
    unified_diff,
)
from tests.support.trees import make_tree


class Workspace:
    """A directory, its blobs, and the changes since it was looked at last."""

    def __init__(self, tmp_path: Path) -> None:
        self.root = make_tree(tmp_path / "w", {"a.txt": "one\ntwo\n", "gone.txt": "bye\n"})
        self.blobs = BlobStore(tmp_path / "blobs")
        self.limits = SnapshotLimits(read_total=1 << 21)
        self.last = take_snapshot(self.root, self.blobs, None, self.limits)

    def changes(self) -> WorkspaceChanges:
        after = take_snapshot(self.root, self.blobs, self.last, self.limits)
        changes = diff_snapshots(self.last, after, self.blobs)
        self.last = after
        return changes


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return Workspace(tmp_path)


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
