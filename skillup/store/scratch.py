"""Where trials work while they run: outside of every project, and gone afterwards.

Agents look upwards from their working directory for instructions and skills (``CLAUDE.md`` as far
as the root; ``AGENTS.md`` and ``.agents/skills`` as far as the repository's root). In a run
directory under the user's project they would find the user's own. So trials work in TMPDIR, or
where that is not set in /var/tmp, as agents may write into /tmp; ``RUN/scratch`` is a symbolic link
to there. Its path is short, too, which the sockets that agents make in it need.

What a finished trial leaves is removed; its directories, if nobody can be at work there any more,
serve another trial of the run: to make and remove them was a fifth of a small trial. What agents
are told of their place then stays the same, too, and what their models' providers keep of it.
"""

from __future__ import annotations

import os
import secrets
import stat
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from skillup.process.tree import ProcessRow, end_leftovers, nothing_escaped
from skillup.store.files import disk_errors
from skillup.workspace.disk import same_path

_APART = "/var/tmp"  # noqa: S108 - a new directory, and nobody else's


class _Place(NamedTuple):
    path: str
    engine: str | None  # For which it may serve again; None: for nobody
    settled: dict[str, _Settled]  # By path: directories that :func:`_reset` has looked at


class Scratch:
    """The scratch directories of one run; safe to use from several threads."""

    def __init__(self, link: Path) -> None:
        self._link = link
        self._lock = threading.Lock()
        self._home: Path | None = None  # Where the link led, once it was found to be ours
        self._used: dict[str, _Place] = {}  # By job
        self._free: dict[str, list[_Place]] = {}  # Emptied places, by the engine that served there
        self._old: list[str] = []  # Emptied directories that nobody needs
        self._made = 0  # Of both so far

    def directory(self, job_id: str, *, unique: bool = False) -> Path:
        """A real path, empty; `unique`: never another trial's. Raises RunDirectoryError."""
        self.remove(job_id)
        home = self._home or self._made_home()
        engine = None if unique else job_id.split("/")[-3:][0]
        free = self._free.get(engine) if engine is not None else None
        place = free.pop() if free else None
        while place is None:
            self._made += 1
            with disk_errors("make", home), suppress(FileExistsError):
                os.mkdir(made := f"{home}/{self._made}{_OWN * unique}", 0o700)  # noqa: PTH102
                place = _Place(made, engine, {})
        self._used[job_id] = place
        return same_path(place.path)

    def take_over(self, owners: Mapping[str, str | None]) -> None:
        """What earlier processes left: by name of a directory, who used it last and did not finish.

        None: it finished. Then somebody may be there by now of whom nothing is known yet: the
        directory is removed, as any that is not known; but for a job's own, which was to be kept.
        """
        numbers = (name.removesuffix(_OWN) for name in owners)
        self._made = max((int(number) for number in numbers if number.isdecimal()), default=0)
        home = self._existing_home()
        for path in home.iterdir() if home is not None else ():
            if (job := owners.get(path.name)) is not None:
                self._used[job] = _Place(str(path), None, {})
            elif path.name not in owners or not path.name.endswith(_OWN):
                remove_tree(path)

    def _made_home(self) -> Path:
        with self._lock, disk_errors("make", self._link):
            home = self._existing_home()
            if home is None:
                apart = not os.environ.get("TMPDIR") and os.access(_APART, os.W_OK | os.X_OK)
                place = tempfile.mkdtemp(prefix="skillup-", dir=_APART if apart else None)
                home = Path(place).resolve()
                self._link.unlink(missing_ok=True)
                self._link.symlink_to(home, target_is_directory=True)
                # Not in the directory itself: agents would find the run by it.
                note = user_directory("scratch") / home.name
                note.write_text(f"{home}\n{self._link.absolute()}\n", encoding="utf-8")
            self._home = home
            return home

    def existing(self, job_id: str) -> Path | None:
        """The job's directory as an earlier process left it; None if there is none."""
        place = self._used.get(job_id)
        path = Path(place.path) if place is not None else None
        return path if path and path.is_dir() and not path.is_symlink() else None

    def remove(self, job_id: str) -> bool:
        """Removes the job's directory and all that is in it; False if something could not be."""
        place = self._used.pop(job_id, None)
        return place is None or not os.path.lexists(place.path) or remove_tree(Path(place.path))

    def set_aside(self, job_id: str) -> Callable[[], object] | None:
        """The job's directory is to go. Small and as it was made it is emptied, for another trial
        on the same engine; not while a process runs that may still work there.

        Returns what is left to do, and may take long.
        """
        place = self._used.get(job_id)
        if place is None:
            return None
        try:
            if place.engine is None or not nothing_escaped():
                return partial(self.remove, job_id)
            for emptied in _reset(place.path, _KEPT, [_SMALL], place.settled):
                self._made += 1
                self._old.append(f"{self._home}/{self._made}{_OLD}")
                os.rename(emptied, self._old[-1])  # noqa: PTH104 - done for every trial
        except OSError:
            return partial(self.remove, job_id)
        del self._used[job_id]
        self._free.setdefault(place.engine, []).append(place)
        if len(self._old) < _MANY_OLD:
            return None
        old, self._old = self._old, []
        return lambda: [remove_tree(Path(one)) for one in old]

    def close(self) -> None:
        """Removes directories that were not used, and then the whole place if it is empty."""
        with self._lock:
            home, self._home = self._existing_home(), None
            if home is None:
                return
            emptied = [place.path for places in self._free.values() for place in places]
            for path in (*emptied, *self._old):
                remove_tree(Path(path))
            for directory in home.iterdir():
                with suppress(OSError):
                    directory.rmdir()
            with suppress(OSError):
                home.rmdir()
                self._link.unlink()
                (user_directory("scratch") / home.name).unlink()

    def _existing_home(self) -> Path | None:
        """What the link points to, if it is a directory that only we can have made."""
        if self._home is None:
            with suppress(OSError):
                home = self._link.readlink()
                self._home = home if _is_private(home) else None
        return self._home


def user_directory(name: str) -> Path:
    """One place for all of a user's skillups: ``$XDG_CACHE_HOME/skillup/NAME``, made if need be.

    Where that cannot be written, a place of this user's among the system's temporary files.
    """
    home = os.path.expanduser("~/.cache")  # noqa: PTH111 - Path's raises where there is no home
    directory = Path(os.environ.get("XDG_CACHE_HOME") or home) / "skillup" / name
    with suppress(OSError):
        directory.mkdir(parents=True, exist_ok=True)
    if not os.access(directory, os.W_OK | os.X_OK):
        directory = Path(tempfile.gettempdir()) / f"skillup-{os.geteuid()}" / name
        directory.mkdir(parents=True, exist_ok=True)
    return directory


def end_what_was_left() -> list[ProcessRow]:
    """End the agents and scripts of skillups that were killed, and remove their scratch places."""
    ended = end_leftovers(user_directory("processes"))
    remove_orphaned()
    return ended


def remove_orphaned() -> None:
    """Removes scratch places whose run directory is gone: logins may have been copied there."""
    for note in sorted(user_directory("scratch").iterdir()):
        with suppress(OSError, ValueError):
            home, link = map(Path, note.read_text(encoding="utf-8").splitlines())
            if link.is_symlink() and link.readlink() == home:
                continue
            ours = home.name == note.name and home.name.startswith("skillup-")
            if ours and (not home.exists() or (_is_private(home) and remove_tree(home))):
                note.unlink()


def remove_tree(path: Path) -> bool:
    """Removes a directory tree, read-only directories too; whether nothing is left of it.

    Links are never followed. Each directory is moved up to the top before its turn comes: however
    deep agents nest them, no path gets too long for the system.
    """
    with suppress(OSError, RecursionError):
        if path.is_symlink() or not path.is_dir():
            path.unlink()
            return True
        _empty(os.fspath(path), None)
        path.rmdir()
        return True
    waiting = [path]
    while waiting:
        directory = waiting.pop()
        with suppress(OSError):
            directory.chmod(0o700)
            with os.scandir(directory) as scan:
                entries = list(scan)
            for entry in entries:
                with suppress(OSError):
                    if not entry.is_dir(follow_symlinks=False):
                        os.unlink(entry.path)  # noqa: PTH108 - many files, and Paths take time
                        continue
                    below = Path(entry.path)
                    below.chmod(0o700)  # else its entry for the parent cannot be changed
                    waiting.append(below.rename(path / f".removing-{secrets.token_hex(8)}"))
            if directory != path:
                directory.rmdir()
    with suppress(OSError):
        path.rmdir()
    return not os.path.lexists(path)


_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_TEMPORARY = "tmp"
_ANY = "*"
# What stays of a place that another trial gets: directories as each trial makes them, and those of
# its engine's sessions, which are by place or date.
_KEPT: Mapping[str, Any] = {
    "home": {
        "home": {
            ".claude": {"projects": {_ANY: {}}},
            ".codex": {"sessions": {_ANY: {_ANY: {_ANY: {}}}}},
        }
    },
    _TEMPORARY: {},
    "workspace": {},
}
_OLD, _OWN = ".old", ".own"  # What no other trial gets
_MANY_OLD = 40
"""So many directories are removed together, in a thread: some file systems wait for the disk (ext4
with `discard`) at each."""
_SMALL = 100  # Entries; one more for each 4 KiB: to remove one takes up to 0.1 ms
_UMASK = os.umask(0o077)
os.umask(_UMASK)
_PRIVATE, _USUAL = stat.S_IFDIR | 0o700, stat.S_IFDIR | (0o777 & ~_UMASK)
_MODES = {_TEMPORARY: _PRIVATE, "projects": None, "sessions": None}

_Settled = tuple[tuple[int, int, int], list[tuple[str, Mapping[str, Any], int | None]]]
"""Device, inode and time of the last change; and what is to be looked at below."""
_TICKS_NS = 100_000_000  # Much longer than clocks of file systems stand still, 10 ms at most


def _reset(
    path: str,
    kept: Mapping[str, Any],
    left: list[int],
    settled: dict[str, _Settled],
    mode: int | None = _PRIVATE,
) -> Iterator[str]:
    """Removes all that is in a directory where nobody is at work, but directories that are `kept`.

    Others are emptied of files, and yielded, to be taken away. Raises OSError, also if one that is
    kept has not its `mode` (None: a CLI made it), or if there is more than `left`; and
    RecursionError. One that has not changed since it was `settled` is as it was then.
    """
    now, status = time.time_ns(), os.lstat(path)
    stamp, found = (status.st_dev, status.st_ino, status.st_ctime_ns), status.st_mode
    known = settled.get(path)
    if known is None or known[0] != stamp:
        added = (one for one in os.listxattr(path) if not one.startswith("security."))
        if any(added) or (found != mode and (mode or found & _PRIVATE != _PRIVATE)):
            raise PermissionError(path)
        with os.scandir(path) as scan:
            entries = list(scan)
        known = stamp, []
        for entry in entries:
            if (own := kept.get(entry.name)) is not None:
                usual = _PRIVATE if "home" in own else _MODES.get(entry.name, _USUAL)
                known[1].append((entry.path, own, usual))
                continue
            _count(entry, left)
            if not entry.is_dir(follow_symlinks=False):
                os.unlink(entry.path)  # noqa: PTH108
            elif (own := kept.get(_ANY)) is not None:
                known[1].append((entry.path, own, None))
            else:
                _empty(entry.path, None, left)
                yield entry.path
        # Coarse clocks, which say whole milliseconds, tell nothing.
        if stamp[2] < now - _TICKS_NS and stamp[2] % 1_000_000:
            settled[path] = known
    for one, own, usual in known[1]:
        yield from _reset(one, own, left, settled, usual)


def _count(entry: os.DirEntry[str], left: list[int]) -> None:
    left[0] -= 1 + (entry.stat(follow_symlinks=False).st_size >> 12)
    if left[0] < 0:
        raise OSError(entry.name)


def _empty(name: str, parent: int | None, left: list[int] | None = None) -> None:
    """Removes all that is in a directory, never through a link that came in between.

    Where there may be so much `left`, but for directories, which are emptied. Raises OSError, also
    if there is more; and RecursionError.
    """
    directory = os.open(name, _DIRECTORY, dir_fd=parent)
    try:
        with os.scandir(directory) as scan:
            entries = list(scan)
        if left is not None and len(entries) > left[0]:
            raise OSError(name)
        for entry in entries:
            if left is not None:
                _count(entry, left)
            if not entry.is_dir(follow_symlinks=False):
                os.unlink(entry.name, dir_fd=directory)
                continue
            _empty(entry.name, directory, left)
            if left is None:
                os.rmdir(entry.name, dir_fd=directory)
    finally:
        os.close(directory)


def _is_private(directory: Path) -> bool:
    """Whether it is a directory of ours that nobody else may enter. Raises OSError."""
    status = directory.lstat()
    private = stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid()
    return private and not status.st_mode & 0o077
