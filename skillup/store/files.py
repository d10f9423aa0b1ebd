"""Files that are either the old one or the new one, whenever the machine stops."""

from __future__ import annotations

import errno
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from skillup.errors import ExitCode, RunDirectoryError

_NOT_ALLOWED = "you may not write there: change its permissions, or choose another --out"
_HINTS = {
    errno.ENOSPC: "the disk is full: free some space, then go on with --resume",
    errno.EDQUOT: "your disk quota is used up: free some space, then go on with --resume",
    errno.EFBIG: "files of that size are not allowed here: raise the limit, or use another --out",
    errno.EACCES: _NOT_ALLOWED,
    errno.EPERM: _NOT_ALLOWED,
    errno.EROFS: "the file system is read-only: choose another --out",
    errno.EMFILE: "more open files are needed: raise `ulimit -n`, or run fewer trials at once (-j)",
    errno.ENFILE: "the machine has too many open files: run fewer trials at once (-j)",
    errno.ENAMETOOLONG: "the path is too long for this file system: choose a shorter --out",
}
_TEMPORARY_ENDING = ".skillup-tmp"


@contextmanager
def disk_errors(doing: str, path: Path) -> Iterator[None]:
    """Raises RunDirectoryError in place of any OSError: ``cannot <doing> <path>: …``."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error)
        hint = _HINTS.get(error.errno or 0)
        refused = RunDirectoryError(f"cannot {doing} {path}: {reason}", hint=hint)
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            refused.exit_code = ExitCode.ERROR  # the machine's trouble, no wrong use
        raise refused from error


def write_atomic(path: Path, data: bytes, *, durable: bool = True) -> None:
    """Replaces ``path`` by a file that holds ``data``; its directory must exist.

    ``durable`` waits until it is on the disk; without, a crash of the machine, not of skillup, may
    leave an empty file. Raises RunDirectoryError if writing fails; ``path`` is then as it was.
    Several writers may write the same path at once: one of them is the last.
    """
    # In the same directory, because a rename across file systems is a copy.
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(6)}{_TEMPORARY_ENDING}")
    with disk_errors("write", path):
        try:
            with temporary.open("xb") as file:
                file.write(data)
                if durable:
                    file.flush()
                    os.fsync(file.fileno())
            temporary.replace(path)
        except BaseException:
            with suppress(OSError):
                temporary.unlink()
            raise
        if durable:
            sync_directory(path.parent)


def sync_directory(directory: Path) -> None:
    """Makes renames in ``directory`` last. Raises OSError."""
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def is_temporary(name: str) -> bool:
    """Whether a file of this name is one that a writer has not finished."""
    return name.startswith(".") and name.endswith(_TEMPORARY_ENDING)


def remove_temporary_files(directory: Path) -> None:
    """Removes what writers that were killed have left in ``directory``; nobody may be writing."""
    for leftover in directory.glob(f".*{_TEMPORARY_ENDING}"):
        with suppress(OSError):
            leftover.unlink()


def make_directory(directory: Path) -> None:
    """Makes ``directory`` and its parents, and makes that last. Raises RunDirectoryError."""
    with disk_errors("make", directory):
        missing = []
        at = directory
        while not at.is_dir() and at != at.parent:
            missing.append(at)
            at = at.parent
        if missing:
            directory.mkdir(parents=True, exist_ok=True)
        for made in missing:
            sync_directory(made.parent)


def set_aside(path: Path, suffix: str) -> Path:
    """Renames ``path`` to ``<name>.<suffix>-<n>`` with the first free n from 1; returns that."""
    number = 1
    while os.path.lexists(target := path.with_name(f"{path.name}.{suffix}-{number}")):
        number += 1
    with disk_errors("set aside", path):
        return path.rename(target)


def open_regular(path: Path) -> BinaryIO:
    """The file, to be read; a pipe in its place would block for ever.

    Raises OSError, also where it is no regular file; links are followed.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, "it is no regular file", str(path))
        return os.fdopen(descriptor, "rb")
    except BaseException:
        os.close(descriptor)
        raise


def read_regular(path: Path) -> bytes:
    """What is in the file; as :func:`open_regular`."""
    with open_regular(path) as file:
        return file.read()
