"""What the operating system refuses becomes one error that says what to do."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from skillup.errors import ExitCode, RunDirectoryError

_HINTS = {
    errno.ENOSPC: "the disk is full: free some space, then go on with --resume",
    errno.EDQUOT: "your disk quota is used up: free some space, then go on with --resume",
    errno.EFBIG: "files of that size are not allowed here: raise the limit, or use another --out",
    errno.EACCES: "you may not write there: change its permissions, or choose another --out",
    errno.EPERM: "you may not write there: change its permissions, or choose another --out",
    errno.EROFS: "the file system is read-only: choose another --out",
    errno.EMFILE: "more open files are needed: raise `ulimit -n`, or hold fewer trials (-j)",
    errno.ENFILE: "the machine has too many open files: hold fewer trials at once (-j)",
    errno.ENAMETOOLONG: "the path is too long for this file system: choose a shorter --out",
}

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


@contextmanager
def disk_errors(doing: str, path: Path) -> Iterator[None]:
    """Raises RunDirectoryError in place of any OSError: ``cannot <doing> <path>: …``."""
    try:
        yield
    except OSError as error:
        hint = _HINTS.get(error.errno or 0)
        reason = error.strerror or str(error)
        refused = RunDirectoryError(f"cannot {doing} {path}: {reason}", hint=hint)
        if error.errno in _FULL:
            refused.exit_code = ExitCode.ERROR  # the machine's trouble, no wrong use
        raise refused from error
