"""The directories in which scripts and agents judge: made, removed, and swept after a kill.

Each holds a mark that its skillup keeps locked for as long as it lives. Whoever gets the lock of a
mark knows that nobody owns the directory any more; nothing without a mark is ever touched.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from skillup.judges.models.cache import AnswerCache
from skillup.ratelimit.slow_down import Pacing
from skillup.redaction.secrets import NO_SECRETS, Secrets
from skillup.schema.profile import Profile

_PREFIX = "skillup-judge-"
_MARK = ".skillup-judge-scratch"
_CONTENT = b"A directory of skillup's judges; removed when its owner has ended.\n"


@contextmanager
def judge_scratch() -> Iterator[str]:
    """A new directory among the system's temporary ones, until the context is left."""
    # What a judge leaves there, whoever owns it, is no reason to lose the verdict.
    with tempfile.TemporaryDirectory(prefix=_PREFIX, ignore_cleanup_errors=True) as path:
        lock = _marked(Path(path))
        try:
            yield path
        finally:
            os.close(lock)


def remove_abandoned() -> list[Path]:
    """Removes the directories of skillups that were killed; returns them. Raises nothing."""
    removed = []
    for directory in sorted(Path(tempfile.gettempdir()).glob(f"{_PREFIX}*")):
        try:
            lock = _lock_of_nobody(directory)
        except OSError:
            continue
        if lock is None:
            continue
        try:
            _remove(directory)
        finally:
            os.close(lock)
        removed.append(directory)
    return removed


def _marked(directory: Path) -> int:
    """The descriptor that holds the lock. The mark appears locked: nobody can come in between."""
    unfinished = directory / f"{_MARK}.new"
    lock = os.open(unfinished, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC, 0o600)
    # Where there are no locks the directory is not swept after a kill, and that is all.
    with suppress(OSError):
        os.write(lock, _CONTENT)
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        unfinished.replace(directory / _MARK)
    return lock


def _lock_of_nobody(directory: Path) -> int | None:
    """The lock of a directory that is ours and has no owner; None: it is none, or it has one.

    Raises OSError where there is no mark, or somebody holds it.
    """
    status = directory.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid():
        return None
    lock = os.open(directory / _MARK, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        right = stat.S_ISREG(os.fstat(lock).st_mode) and os.read(lock, 200) == _CONTENT
        if right:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return lock
    except OSError:
        os.close(lock)
        raise
    os.close(lock)
    return None


def _remove(directory: Path) -> None:
    """With what agents are not allowed to change; links are removed and not followed."""
    for parent, names, _ in os.walk(directory, followlinks=False):
        for child in (Path(parent) / name for name in names):
            if not child.is_symlink():
                with suppress(OSError):
                    child.chmod(0o700)
    shutil.rmtree(directory, ignore_errors=True)


# What judges that start programs need to know of where they run.


@dataclass(frozen=True, slots=True)
class JudgePlace:
    """Where a script or an agent judges, and whom it may ask."""

    environment: Mapping[str, str]
    """The user's own environment."""
    mask: Callable[[str], str]
    """Hides the secrets of a text that will be kept or shown."""
    scratch: Path
    """An empty directory of this judging alone; whoever made it removes it."""
    profiles: Callable[[str | None], Profile]
    """A profile by its name; None: the record's own. Raises UsageError if there is none."""
    suite_root: Path
    """What the paths of the case are relative to; it need not be there any more."""
    pacing: Pacing
    """The ways to the providers of agents, shared with whoever else asks them."""
    answers: AnswerCache | None = None
    """What agents have answered; None: nothing is kept."""
    secrets: Secrets = NO_SECRETS
    """What nothing of the run may show, nor the raw streams of its agents."""
