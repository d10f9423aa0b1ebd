"""The state of a workspace at one moment: every file's hash, its content kept in a blob store."""

from __future__ import annotations

import difflib
import errno
import hashlib
import os
import re
import stat
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import field
from functools import cached_property
from itertools import islice, takewhile
from pathlib import Path
from typing import Any

from skillup.dataclass import frozen
from skillup.schema.record import FileState, WorkspaceChanges
from skillup.workspace.disk import Entry, EntryKind, list_tree, shown


class BlobStore:
    """Contents by their SHA-256, in memory; a run's are in its file."""

    def __init__(self, mask: Callable[[bytes], bytes] | None = None) -> None:
        """`mask` takes secrets out of what is put; the SHA-256 is that of what is stored."""
        self.masked = mask or (lambda content: content)
        self.references: dict[Path, FileState | None] = {}
        """What judging needs, as it was before the first trial; None: it could not be read."""
        self._contents: dict[bytes, bytes] = {}

    def put(self, content: bytes) -> str:
        """Stores the content; returns the SHA-256 of what is stored, in hex."""
        content = self.masked(content)
        digest = hashlib.sha256(content)
        self._store(digest.digest(), content)
        return digest.hexdigest()

    def get(self, sha: str) -> bytes | None:
        """The content with this SHA-256; None if it is not here, or no longer what it was."""
        return self._load(bytes.fromhex(sha))

    def read_state(self, state: FileState) -> bytes | None:
        """The content of a file; None if it was not kept."""
        return self.get(state.sha256) if state.sha256 is not None and state.kept else None

    def _store(self, key: bytes, content: bytes) -> None:
        self._contents[key] = content

    def _load(self, key: bytes) -> bytes | None:
        return self._contents.get(key)


# A file that was changed this shortly before a snapshot began may be changed again without its
# times telling (file systems count in ticks, some of two seconds): it is read again next time.
_TIMES_TELL_AFTER_NS = 2_500_000_000

_DIFF_CHARACTERS = 64 << 10
_MANY = 1_000  # Files of which a list is freed in parts


@frozen
class SnapshotLimits:
    """Bytes that are read and kept of one workspace."""

    kept_file: int = 10 << 20  # Larger files are hashed, but their content is not kept
    kept_total: int = 500 << 20  # Files that would go beyond it are not kept
    read_total: int = 1 << 30  # Files that would go beyond it have no hash


class FreedInParts(dict[str, Any]):
    """By path; freed bit by bit: for so many at once all others would wait for up to 30 ms."""

    def __del__(self) -> None:
        _free([*self, *self.values()])


def _free(content: list[Any]) -> None:
    while content:
        del content[-2_000:]
        # Else in a thread, where others have their turn; or the interpreter ends.
        with suppress(RuntimeError, ImportError):
            from asyncio import get_running_loop  # not needed by most who import this

            get_running_loop().call_soon(_free, content)
            return


Stamp = str
"""What changes whenever a file is written to: size, mtime and ctime in ns, inode."""


@frozen
class Snapshot:
    """All files and links of a workspace, without directories and what is in ``.git``."""

    files: dict[str, FileState]
    """By POSIX path, sorted. Bytes that are no UTF-8 are written ``\\xNN``."""
    notes: tuple[str, ...] = ()  # What is not, or not wholly, in it, and why; a sentence each
    unseen: tuple[str, ...] = ()
    """Paths that could not be looked at, but for `.git`; directories have a slash at the end."""
    stamps: dict[str, Stamp] = field(default_factory=dict)  # Of the regular files
    started_ns: int = 0  # Unix time

    @property
    def is_small(self) -> bool:
        """Whether it takes no time to compare it with another one."""
        states = self.files.values()
        return len(states) < 200 and sum(state.size for state in states) < _TEXT_BYTES


def take_snapshot(
    root: Path,
    blobs: BlobStore,
    previous: Snapshot | None = None,
    limits: SnapshotLimits | None = None,
    *,
    stop: Callable[[], bool] = lambda: False,
    small: bool = False,
) -> Snapshot:
    """Looks at everything below ``root`` and stores the contents of its files.

    Files whose times, size and inode are as in ``previous`` are not read again. A file that cannot
    be read or is too large to be hashed has no ``sha256``; FIFOs, sockets and devices are left out;
    both are noted. It is given up, as an InterruptedError, once ``stop`` says so. Raises OSError if
    ``root`` cannot be read or is no directory (any more), or if the blobs cannot be written;
    LargeTreeError where it should be ``small``.
    """
    if os.path.islink(root):  # noqa: PTH114 - done for every turn
        raise NotADirectoryError(errno.ENOTDIR, "it was replaced by a symbolic link", str(root))
    reader = _FileReader(root, blobs, previous or Snapshot({}), limits or SnapshotLimits())
    notes = reader.notes
    started_ns = time.time_ns()
    unseen: list[str] = []
    files: dict[str, FileState] = {}
    stamps: dict[str, Stamp] = {}

    def unreadable(path: str, error: OSError) -> None:
        if not path:
            raise error
        name = shown(path)
        unseen.append(f"{name}/")
        notes.append(f"{name[:300]}/ could not be read: {error.strerror}")

    def is_git(path: str, kind: EntryKind) -> bool:
        return kind == "directory" and f"/{path}".endswith("/.git")

    for entry in list_tree(root, leave_out=is_git, on_error=unreadable, small=small):
        if stop():
            raise InterruptedError(errno.EINTR, "the snapshot is not needed any more", str(root))
        path = shown(entry.path)
        state = None
        if entry.kind == "special":
            unseen.append(path)
            notes.append(f"{path} is a FIFO, socket or device; it was left out")
        elif entry.kind == "link":
            state = _link(root, entry)
        elif entry.kind == "file":
            now = entry.status
            # A text: to free a tuple and its numbers for each of 30,000 files takes 10 ms.
            stamp = f"{now.st_size} {now.st_mtime_ns} {now.st_ctime_ns} {now.st_ino}"
            stamps[path], state = stamp, reader.file(entry, path, stamp)
        if state is not None:
            files[path] = state
    for number, what, limit in (
        (reader.over_total, "kept", reader.limits.kept_total),
        (reader.unread, "read", reader.limits.read_total),
    ):
        if number:
            notes.append(f"{number} files were not {what}: over {limit / 1e6:g} MB together")
    in_order = {path: files[path] for path in sorted(files)}
    if len(files) >= _MANY:
        in_order, stamps = FreedInParts(in_order), FreedInParts(stamps)
    if previous is not None and in_order == previous.files:
        in_order = previous.files  # records of many turns then hold one list
    return Snapshot(in_order, tuple(sorted(notes)), tuple(sorted(unseen)), stamps, started_ns)


def diff_snapshots(before: Snapshot, after: Snapshot, blobs: BlobStore) -> WorkspaceChanges:
    """Added, modified and deleted paths, sorted, and a diff, cut where it is too long."""

    def differs(path: str) -> bool:
        old, new = before.files[path], after.files[path]
        if (old.size, old.executable, old.link) != (new.size, new.executable, new.link):
            return True
        if new.link is None and None in (old.sha256, new.sha256):
            # Without a hash only the times can tell.
            return before.stamps.get(path) != after.stamps.get(path)
        return old.sha256 != new.sha256

    added = sorted(after.files.keys() - before.files.keys())
    deleted = sorted(before.files.keys() - after.files.keys())
    modified = sorted(filter(differs, before.files.keys() & after.files.keys()))
    paths = sorted([*added, *deleted, *modified])
    diff, room = "", _DIFF_CHARACTERS
    for line in file_diffs(paths, before.files, after.files, blobs.read_state):
        room -= len(line) + 1
        if room < 0:
            diff += f"[the diff goes on; cut at {_DIFF_CHARACTERS} characters]\n"
            break
        diff += f"{line}\n"
    return WorkspaceChanges(added=added, modified=modified, deleted=deleted, diff=diff)


def _link(root: Path, entry: Entry) -> FileState | None:
    link = root / entry.path
    try:
        target = os.readlink(link)  # noqa: PTH115 - its exact spelling
    except OSError:
        return None  # gone since it was listed
    dangling = False
    try:
        link.stat()
    except OSError as error:
        dangling = error.errno in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP)
    return FileState(sha256=None, size=entry.status.st_size, link=shown(target), dangling=dangling)


class _FileReader:
    """Hashes and keeps files, within the limits of one snapshot."""

    def __init__(
        self, root: Path, blobs: BlobStore, previous: Snapshot, limits: SnapshotLimits
    ) -> None:
        self._given_root = root
        self.blobs = blobs
        self.previous = previous
        self.limits = limits
        self.notes: list[str] = []
        self.kept_bytes = self.over_total = self.read_bytes = self.unread = 0

    @cached_property
    def root(self) -> Path:
        """The real one; to find it takes longer than to look at an empty workspace."""
        return Path(os.path.realpath(self._given_root))

    def file(self, entry: Entry, path: str, stamp: Stamp) -> FileState | None:
        size, limits, previous = entry.status.st_size, self.limits, self.previous
        small = size <= limits.kept_file
        keep = small and self.kept_bytes + size <= limits.kept_total
        if keep:
            self.kept_bytes += size
        elif small:
            self.over_total += 1
        else:
            about = f"{path} ({size / 1e6:.1f} MB)"
            self.notes.append(f"{about} was not kept: over {limits.kept_file / 1e6:g} MB")
        settled = entry.status.st_ctime_ns < previous.started_ns - _TIMES_TELL_AFTER_NS
        if settled and previous.stamps.get(path) == stamp:
            known = previous.files.get(path)
            if known is not None and known.kept == keep:
                return known
        executable = bool(entry.status.st_mode & stat.S_IXUSR)
        unhashed = FileState(sha256=None, size=size, executable=executable, kept=False)
        if self.read_bytes + size > limits.read_total:
            self.unread += 1
            return unhashed
        self.read_bytes += size
        try:
            # It may have become a link or a FIFO since it was listed: neither follow nor wait.
            flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
            descriptor = os.open(f"{self.root}/{entry.path}", flags)
        except FileNotFoundError:
            return None
        except OSError as error:
            self.notes.append(f"{path} could not be read: {error.strerror}")
            return unhashed
        with os.fdopen(descriptor, "rb") as file:
            where = f"/proc/self/fd/{descriptor}"
            if sys.platform == "linux" and not os.readlink(where).startswith(f"{self.root}/"):  # noqa: PTH115
                # Of a live agent's programs one made a link of a directory on the way.
                self.notes.append(f"{path} was moved while it was read")
                return unhashed
            if keep:
                now = os.fstat(descriptor).st_size  # it may have grown since
                content = file.read(min(now, limits.kept_file))
                sha, size = self.blobs.put(content), len(content)
            else:
                sha = hashlib.file_digest(file, "sha256").hexdigest()
                size = file.tell()
        return FileState(sha256=sha, size=size, executable=executable, kept=keep)


_CONTEXT_LINES = 3
_MOST_COMPARISONS = 2_000_000  # Beyond this many pairs of lines the changed region is not shown
_TEXT_BYTES = 1 << 20  # Larger files are only named in a diff


def unified_diff(before: str, after: str) -> Iterator[str]:
    """The hunks, line by line without newlines; nothing if the texts are equal.

    A file without a newline at its end is marked as git marks it.
    """
    if before == after:
        return
    # Split at newlines only (not at form feeds and the like), each with its newline.
    a, b = before.split("\n"), after.split("\n")
    for lines in (a, b):
        last = lines.pop()
        lines[:] = [f"{line}\n" for line in lines]
        if last:
            lines.append(last)
    start = sum(1 for _ in takewhile(lambda two: two[0] == two[1], zip(a, b, strict=False)))
    backwards = zip(reversed(a[start:]), reversed(b[start:]), strict=False)
    end = sum(1 for _ in takewhile(lambda two: two[0] == two[1], backwards))
    # Only what lies between is compared, with enough around it for the context.
    skip, keep = max(0, start - _CONTEXT_LINES), max(0, end - _CONTEXT_LINES)
    a, b = a[skip : len(a) - keep], b[skip : len(b) - keep]
    if len(a) * len(b) > _MOST_COMPARISONS:
        yield f"[lines {start + 1} to {skip + len(a)} changed: too many to be shown]"
        return
    for line in islice(difflib.unified_diff(a, b, n=_CONTEXT_LINES), 2, None):
        if line.startswith("@@"):
            line = re.sub(r"(?<=[-+])\d+", lambda first: str(int(first[0]) + skip), line)
        yield line.removesuffix("\n")
        if not line.endswith("\n"):
            yield "\\ No newline at end of file"


def file_diffs(
    paths: Iterable[str],
    before: Mapping[str, FileState],
    after: Mapping[str, FileState],
    read: Callable[[FileState], bytes | None],
) -> Iterator[str]:
    """Unified diffs of `paths`, line by line; binary, large and no longer kept ones are named."""
    for path in paths:
        old, new = before.get(path), after.get(path)
        for mark, side, state in (("---", "a", old), ("+++", "b", new)):
            yield f"{mark} {'/dev/null' if state is None else printable(f'{side}/{path}')}"
        if old is not None and new is not None and old.executable != new.executable:
            yield f"[now {'executable' if new.executable else 'not executable'}]"
        old_text, new_text = _text(old, read), _text(new, read)
        if old_text is not None and new_text is not None:
            yield from unified_diff(old_text, new_text)
            continue
        links = any(state is not None and state.link is not None for state in (old, new))
        why = "" if links else "; not shown: binary, large or not kept"
        yield f"[{_described(old)} → {_described(new)}{why}]"


def printable(path: str) -> str:
    """As git does, so that a newline in a name cannot look like a line of the diff."""
    return path if path.isprintable() else ascii(path)


def _described(state: FileState | None) -> str:
    if state is None:
        return "nothing"
    if state.link is not None:
        return f"symbolic link to {state.link!r}"
    return f"{state.size} bytes"


def _text(state: FileState | None, read: Callable[[FileState], bytes | None]) -> str | None:
    """The file as text; empty if there is no file, None if it cannot be shown."""
    if state is None:
        return ""
    if state.link is not None or state.size > _TEXT_BYTES or not state.kept:
        return None
    content = read(state)
    try:
        return None if content is None or b"\0" in content else content.decode()
    except UnicodeDecodeError:
        return None
