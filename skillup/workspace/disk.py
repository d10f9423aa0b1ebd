"""Directory trees in one fixed order, copies of them, and what the disk refuses."""

from __future__ import annotations

import errno
import os
import secrets
import shutil
import stat
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import lru_cache
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import IO, Any, Literal, TypeVar

import anyio.to_thread

from skillup.dataclass import frozen
from skillup.errors import FullDiskError

T = TypeVar("T")
same_path = lru_cache(256)(Path)
"""Paths of a trial's directories, which are asked for several times in each turn."""


def path_problem(path: str) -> str | None:
    """Why a path that a user wrote may not be one below the workspace; None if it may."""
    pure = PurePosixPath(path)
    if "\0" in path:
        return "it holds a NUL character"
    if pure.is_absolute():
        return "it is absolute; write it relative to the workspace"
    if ".." in pure.parts:
        return "it holds `..`; it must stay in the workspace"
    return None if pure.parts else "it names no file"


def stays_inside(root: Path, link: str) -> bool:
    """Whether the link at ``link`` (relative to ``root``) never leaves ``root`` on its way.

    Absolute targets leave it, and so does ``../name-of-root/file``: in a copy of the tree they
    would lead back to the original or to nothing. Targets that do not exist may stay inside.
    """
    target = os.readlink(root / link)  # noqa: PTH115 - `..` is not taken out of it
    on_its_way = os.path.normpath(os.path.join(os.path.dirname(link), target))  # noqa: PTH118, PTH120
    leaves = on_its_way.split("/")[0] in ("", "..")
    real = os.path.realpath(root / link)
    return not leaves and Path(real).is_relative_to(os.path.realpath(root))


def leads_out(path: Path, root: Path) -> bool:
    """Whether a path below ``root`` is another place by a link, which an agent may have made."""
    at, way = os.fspath(root), os.fspath(path)
    if way.startswith(f"{at}/"):  # mostly there is no link, and this is asked for every turn
        for name in way[len(at) + 1 :].split("/"):
            at = f"{at}/{name}"
            if name == ".." or os.path.islink(at):  # noqa: PTH114
                break
        else:
            return False
    return not Path(os.path.realpath(path)).is_relative_to(os.path.realpath(root))


def is_own_directory(path: str) -> bool:
    """Whether neither it nor the directory that it is in is a link, or gone."""
    try:
        return all(stat.S_ISDIR(os.lstat(one).st_mode) for one in (path, os.path.dirname(path)))  # noqa: PTH120
    except OSError:
        return False


def open_at_once(path: Path, mode: str = "rb", **text: Any) -> IO[Any]:
    """A file as an agent left it: if it is a FIFO by now, nobody waits for its other end."""
    by = lambda name, flags: os.open(name, flags | os.O_NONBLOCK)  # noqa: E731
    return open(path, mode, opener=by, **text)


EntryKind = Literal["file", "link", "directory", "special"]
_KINDS: dict[int, EntryKind] = {
    stat.S_IFREG: "file",
    stat.S_IFLNK: "link",
    stat.S_IFDIR: "directory",
}


@frozen
class Entry:
    path: str  # POSIX, below the root, as the system gave it (undecodable bytes as surrogates)
    kind: EntryKind  # special: a FIFO, socket or device
    status: os.stat_result  # Of the entry itself, not of what a link points to


_FEW_ENTRIES, _LITTLE_BYTES = 100, 1 << 20


class LargeTreeError(Exception):
    """There is so much in a tree that to look at all of it may take more than 20 ms."""


async def do_beside(small: bool, work: Callable[..., T], *arguments: Any) -> T:
    """``work(*arguments)`` in a thread, so that others' time limits need not wait for it.

    What is `small` is done at once: it takes less than the change of threads.
    """
    return work(*arguments) if small else await anyio.to_thread.run_sync(work, *arguments)


def ensure_directory(path: Path, mode: int = 0o777) -> None:
    """With its parents, unless it is there. Raises OSError."""
    if not os.path.isdir(path):  # noqa: PTH112 - it mostly is, and this is done for every trial
        path.mkdir(mode, parents=True, exist_ok=True)


def _raise(_path: str, error: OSError) -> None:
    raise error


def list_tree(
    root: Path,
    *,
    leave_out: Callable[[str, EntryKind], bool] = lambda _path, _kind: False,
    on_error: Callable[[str, OSError], None] = _raise,
    small: bool = False,
) -> Iterator[Entry]:
    """Every entry below ``root``, a directory before its content, sorted by name in each.

    No file is opened and no link followed. ``leave_out(path, kind)`` drops an entry with all that
    is below it. What vanishes meanwhile is left out. What cannot be read goes to
    ``on_error(path, error)``; without it the OSError is raised. Raises LargeTreeError, on the way,
    where it should be `small`.
    """
    pending = [""]
    top = str(root)
    count = size = 0
    while pending:
        relative = pending.pop()
        below: list[str] = []
        try:
            with os.scandir(f"{top}/{relative}" if relative else top) as scan:
                few = islice(scan, _FEW_ENTRIES + 1) if small else scan
                entries = sorted(few, key=lambda entry: entry.name)
        except OSError as error:
            if not (relative and isinstance(error, FileNotFoundError)):
                on_error(relative, error)
            continue
        for entry in entries:
            path = f"{relative}/{entry.name}" if relative else entry.name
            try:
                status = entry.stat(follow_symlinks=False)
            except OSError as error:  # the path is too long, most likely
                if not isinstance(error, FileNotFoundError):
                    on_error(path, error)
                continue
            kind = _KINDS.get(stat.S_IFMT(status.st_mode), "special")
            count, size = count + 1, size + (status.st_size if kind == "file" else 0)
            if small and (count > _FEW_ENTRIES or size > _LITTLE_BYTES):
                raise LargeTreeError(root)
            if leave_out(path, kind):
                continue
            yield Entry(path, kind, status)
            if kind == "directory":
                below.append(path)
        pending.extend(reversed(below))


def shown(path: str) -> str:
    r"""A path as text for people and records: bytes that are no UTF-8 as ``\xNN``."""
    return os.fsencode(path).decode("utf-8", "backslashreplace")


def copy_workspace(source: Path, destination: Path, moved: Callable[[str], str] = str) -> None:
    """Copies a workspace, to go on in the copy; ``destination`` is made, or empty.

    Links are kept, wherever they lead: the agent made them. Raises OSError.
    """
    destination.mkdir(parents=True, exist_ok=True)
    copy_entries(list_tree(source), source, destination, moved)


def copy_entries(
    entries: Iterable[Entry], source: Path, destination: Path, moved: Callable[[str], str] = str
) -> None:
    """With permissions, times and links; FIFOs, sockets and devices are left out.

    `moved` says of each link's target what it is in the copy.
    """
    directories = []
    for entry in entries:
        target = destination / entry.path
        if entry.kind == "directory":
            target.mkdir(exist_ok=True)
            directories.append(entry.path)
        elif entry.kind == "link":
            # Not through Path: it would change the target's spelling (`./a` to `a`).
            os.symlink(moved(os.readlink(source / entry.path)), target)  # noqa: PTH115, PTH211
        elif entry.kind == "file":
            shutil.copy2(source / entry.path, target)
    # Innermost first and last of all: a read-only directory takes no more files, and every new
    # file changes its directory's time.
    for path in reversed(directories):
        shutil.copystat(source / path, destination / path)


TEMPORARY_ENDING = ".skillup-tmp"


def write_whole(path: Path, parts: Iterable[bytes], mode: int = 0o666) -> None:
    """Replaces ``path``, also a link: who reads it finds the old file or the new one, synced.

    If that fails it is as it was. Its directory must exist; several may write it. Raises OSError.
    """
    # In the same directory, because a rename across file systems is a copy.
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(6)}{TEMPORARY_ENDING}")
    try:
        with open(temporary, "xb", opener=lambda name, flags: os.open(name, flags, mode)) as file:
            file.writelines(parts)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        with suppress(OSError):
            temporary.unlink()
        raise


# A full disk is nobody's doing in a trial: no error of the trial, but the end of the run.

_ADVICE = {
    errno.ENOSPC: "free some space",
    errno.EDQUOT: "free some space",
    errno.EFBIG: "raise the limit on the size of files (`ulimit -f`)",
}
_LEAST_BYTES = 256 << 10  # With less the next write may fail


def refuse_full_disk(error: OSError, place: Path | None = None) -> None:
    """Raises FullDiskError if that is why the system refused; `place`: where it does not say."""
    advice = _ADVICE.get(error.errno or 0)
    if advice is not None:
        where = error.filename or place
        raise _full(f"{error.strerror}{f' ({where})' if where else ''}", advice) from error


def refuse_without_room(place: Path) -> None:
    """Raises FullDiskError if the disk of `place` has no room left for bytes, or for files."""
    try:
        disk = os.statvfs(place)
    except OSError:
        return
    # Some file systems have no number of files that they could hold: they say 0 of 0.
    no_files = disk.f_files > 0 and disk.f_favail == 0
    if disk.f_bavail * disk.f_frsize < _LEAST_BYTES or no_files:
        raise _full(f"no room is left on the disk of {place}", _ADVICE[errno.ENOSPC])


def _full(what: str, advice: str) -> FullDiskError:
    hint = f"{advice} (TMPDIR says where trials work), then go on with --resume"
    return FullDiskError(f"the run cannot go on: {what}", hint=hint)
