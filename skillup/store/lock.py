"""One writer for a run directory at a time."""

from __future__ import annotations

import errno
import fcntl
import os
from pathlib import Path

from skillup.errors import RunDirectoryError
from skillup.store.files import disk_errors


class BeingWrittenError(RunDirectoryError):
    """Another process has the lock."""


class RunLock:
    """An exclusive lock on a file, held until ``release`` or the end of the process.

    The system drops it when its holder dies, however it dies: a killed run can be resumed at once.
    The file stays; to remove it would let two processes lock two files of the same name.
    """

    def __init__(self, path: Path) -> None:
        """Takes the lock.

        Raises BeingWrittenError, naming its holder, if another one has it; RunDirectoryError.
        """
        with disk_errors("lock", path):
            self._file = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            self._take(path)
        except BaseException:
            self.release()
            raise

    def _take(self, path: Path) -> None:
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno in (errno.EWOULDBLOCK, errno.EACCES):
                pid = os.pread(self._file, 32, 0).decode(errors="replace").strip()
                holder = f"process {pid}" if pid else "another process"
                raise BeingWrittenError(
                    f"{path.parent} is being written by {holder}",
                    hint=f"wait until {holder} has ended, or stop it, then try again",
                ) from None
            raise RunDirectoryError(
                f"cannot lock {path}: {error.strerror}",
                hint="this file system has no locks: choose a local directory with --out",
            ) from error
        with disk_errors("write", path):
            os.ftruncate(self._file, 0)
            os.pwrite(self._file, f"{os.getpid()}\n".encode(), 0)

    def release(self) -> None:
        """Gives the lock back; may be called again."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1
