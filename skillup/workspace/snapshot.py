"""The state of a workspace at one moment: every file's hash, its content kept in a blob store."""

from __future__ import annotations

import errno
import hashlib
import os
import stat
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from io import BufferedReader
from pathlib import Path
from typing import NamedTuple

from skillup.schema.record import FileState, WorkspaceChanges
from skillup.workspace.blobs import BlobStore
from skillup.workspace.diff import diff_of_files
from skillup.workspace.trees import (
    Entry,
    EntryKind,
    list_tree,
    shown,
)

# A file that was changed this shortly before a snapshot began may be changed again without its
# times telling (file systems count in ticks, some of two seconds): it is read again next time.
_TIMES_TELL_AFTER_NS = 2_500_000_000

DIFF_CHARACTERS = 64 << 10


@dataclass(frozen=True, slots=True)
class SnapshotLimits:
    """How much is read and kept of one workspace. Sizes in bytes."""

    kept_file: int = 10 << 20
    """Larger files are hashed, but their content is not kept."""
    kept_total: int = 500 << 20
    """Content kept of one snapshot; files that would go beyond it are not kept."""
    hashed_file: int = 256 << 20
    """Larger files are not even read: they have no hash."""
    read_total: int = 1 << 30
    """What is read for one snapshot; files that would go beyond it have no hash."""


class Stamp(NamedTuple):
    """What changes whenever a file is written to."""

    size: int
    mtime_ns: int
    ctime_ns: int
    inode: int


@dataclass(frozen=True, slots=True)
class Snapshot:
    """All files and links of a workspace, without directories and what is in ``.git``."""

    files: dict[str, FileState]
    """By POSIX path, sorted. Bytes that are no UTF-8 are written ``\\xNN``."""
    notes: tuple[str, ...] = ()
    """What is not, or not wholly, in it, and why; a sentence each."""
    unseen: tuple[str, ...] = ()
    """Paths that could not be looked at, but for `.git`; directories have a slash at the end."""
    stamps: dict[str, Stamp] = field(default_factory=dict)
    """Of the regular files."""
    started_ns: int = 0
    """Unix time."""


def take_snapshot(
    root: Path,
    blobs: BlobStore,
    previous: Snapshot | None = None,
    limits: SnapshotLimits | None = None,
    *,
    stop: Callable[[], bool] = lambda: False,
) -> Snapshot:
    """Looks at everything below ``root`` and stores the contents of its files.

    Files whose times, size and inode are as in ``previous`` are not read again. A file that cannot
    be read or is too large to be hashed has no ``sha256``; FIFOs, sockets and devices are left out;
    both are noted. It is given up, as an InterruptedError, once ``stop`` says so. Raises OSError if
    ``root`` cannot be read or is no directory (any more), or if the blobs cannot be written.
    """
    if root.is_symlink():
        raise NotADirectoryError(errno.ENOTDIR, "it was replaced by a symbolic link", str(root))
    snap = _Taking(root, blobs, previous, limits or SnapshotLimits())
    started_ns = time.time_ns()

    unseen: list[str] = []

    def unreadable(path: str, error: OSError) -> None:
        if not path:
            raise error
        unseen.append(f"{shown(path)}/")
        snap.notes.append(f"{_shortened(shown(path))}/ could not be read: {error.strerror}")

    files: dict[str, FileState] = {}
    stamps: dict[str, Stamp] = {}
    for entry in list_tree(root, leave_out=_is_git_directory, on_error=unreadable):
        if stop():
            raise InterruptedError(errno.EINTR, "nobody wants to know any more", str(root))
        path = shown(entry.path)
        if entry.kind == "special":
            unseen.append(path)
            snap.notes.append(f"{path} is a FIFO, socket or device; it was left out")
            continue
        state = snap.link(entry) if entry.kind == "link" else None
        if entry.kind == "file":
            state = snap.file(entry, path)
            stamps[path] = _stamp(entry.status)
        if state is not None:
            files[path] = state
    if snap.over_total:
        snap.notes.append(
            f"the contents of {snap.over_total} files were not kept: "
            f"the workspace's files are over {snap.limits.kept_total / 1e6:g} MB together"
        )
    if snap.unread:
        snap.notes.append(
            f"{snap.unread} files were not read: "
            f"what is new in the workspace is over {snap.limits.read_total / 1e6:g} MB"
        )
    return Snapshot(
        dict(sorted(files.items())),
        tuple(sorted(snap.notes)),
        tuple(sorted(unseen)),
        stamps,
        started_ns,
    )


def diff_snapshots(
    before: Snapshot, after: Snapshot, blobs: BlobStore, *, limit: int = DIFF_CHARACTERS
) -> WorkspaceChanges:
    """Added, modified and deleted paths, sorted, and a diff of some ``limit`` characters."""
    added = sorted(after.files.keys() - before.files.keys())
    deleted = sorted(before.files.keys() - after.files.keys())
    common = before.files.keys() & after.files.keys()
    modified = sorted(path for path in common if _differs(path, before, after))
    paths = sorted([*added, *deleted, *modified])
    diff = diff_of_files(paths, before.files, after.files, blobs, limit)
    return WorkspaceChanges(added=added, modified=modified, deleted=deleted, diff=diff)


def _differs(path: str, before: Snapshot, after: Snapshot) -> bool:
    old, new = before.files[path], after.files[path]
    if (old.size, old.executable, old.link) != (new.size, new.executable, new.link):
        return True
    if new.link is None and None in (old.sha256, new.sha256):
        # Without a hash only the times can tell.
        return before.stamps.get(path) != after.stamps.get(path)
    return old.sha256 != new.sha256


def _is_git_directory(path: str, kind: EntryKind) -> bool:
    return kind == "directory" and (path == ".git" or path.endswith("/.git"))


def _shortened(path: str) -> str:
    return path if len(path) <= 300 else f"{path[:150]}…{path[-100:]}"


def _stamp(status: os.stat_result) -> Stamp:
    return Stamp(status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino)


class _Taking:
    """A snapshot in the making."""

    def __init__(
        self, root: Path, blobs: BlobStore, previous: Snapshot | None, limits: SnapshotLimits
    ) -> None:
        self.root = root
        self.blobs = blobs
        self.previous = previous or Snapshot({})
        self.limits = limits
        self.notes: list[str] = []
        self.kept_bytes = 0
        self.over_total = 0
        self.read_bytes = 0
        self.unread = 0

    def link(self, entry: Entry) -> FileState | None:
        try:
            target = os.readlink(self.root / entry.path)  # noqa: PTH115 - its exact spelling
        except OSError:
            return None  # gone since it was listed
        size = entry.status.st_size
        return FileState(
            sha256=None, size=size, link=shown(target), dangling=self._leads_nowhere(entry)
        )

    def _leads_nowhere(self, entry: Entry) -> bool:
        try:
            (self.root / entry.path).stat()
        except OSError as error:
            return error.errno in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP)
        return False

    def file(self, entry: Entry, path: str) -> FileState | None:
        size = entry.status.st_size
        keep = self._may_be_kept(path, size)
        known = self._unchanged(path, _stamp(entry.status))
        if known is not None and known.kept == keep:
            return known
        executable = bool(entry.status.st_mode & stat.S_IXUSR)
        if size > self.limits.hashed_file:
            return FileState(sha256=None, size=size, executable=executable, kept=False)
        if self.read_bytes + size > self.limits.read_total:
            self.unread += 1
            return FileState(sha256=None, size=size, executable=executable, kept=False)
        self.read_bytes += size
        try:
            file = self._open(entry)
        except FileNotFoundError:
            return None
        except OSError as error:
            self.notes.append(f"{path} could not be read: {error.strerror}")
            return FileState(sha256=None, size=size, executable=executable, kept=False)
        with file:
            sha = (
                self.blobs.put_stream(file)
                if keep
                else hashlib.file_digest(file, "sha256").hexdigest()
            )
            size = file.tell()
        return FileState(sha256=sha, size=size, executable=executable, kept=keep)

    def _open(self, entry: Entry) -> BufferedReader:
        # It may have become a link or a FIFO since it was listed: neither follow nor wait.
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        return os.fdopen(os.open(self.root / entry.path, flags), "rb")

    def _may_be_kept(self, path: str, size: int) -> bool:
        if size > self.limits.hashed_file:
            limit = f"over {self.limits.hashed_file / 1e6:g} MB"
            self.notes.append(f"{path} ({size / 1e6:.1f} MB) was not read: {limit}")
            return False
        if size > self.limits.kept_file:
            self.notes.append(
                f"{path} ({size / 1e6:.1f} MB) was hashed, but its content was not kept: "
                f"over {self.limits.kept_file / 1e6:g} MB"
            )
            return False
        if self.kept_bytes + size > self.limits.kept_total:
            self.over_total += 1
            return False
        self.kept_bytes += size
        return True

    def _unchanged(self, path: str, stamp: Stamp) -> FileState | None:
        """The file's state in the previous snapshot, if it can only be the same still."""
        settled = stamp.ctime_ns < self.previous.started_ns - _TIMES_TELL_AFTER_NS
        if settled and self.previous.stamps.get(path) == stamp:
            return self.previous.files.get(path)
        return None
