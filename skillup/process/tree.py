"""Which processes belong to a turn: found again however they hide from their parents.

A process belongs if it is a descendant of one that does; if it was seen to belong before; if it is
in a session that members are in; if its environment carries the marker; or if it is an orphan that
came to us and no other running turn can have started it. Only a process of skillup's own adopts
orphans (:mod:`skillup.process.tree`); there, whatever marker it bears, each is an agent's.
"""

from __future__ import annotations

import os
import secrets
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from functools import cached_property, lru_cache
from pathlib import Path
from typing import NamedTuple

# The process table: one cheap look at every process of the machine.

HAS_PROC = Path("/proc/self/stat").exists()
_TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
_TICK_TOLERANCE_SECONDS = 0.005


class ProcessRow(NamedTuple):
    """One process. ``(pid, started)`` names it for good; a pid alone is used again later.

    ``started`` is in seconds since boot (Linux) or since the epoch, comparable within one machine.
    ``cpu_seconds`` includes the children it waited for, where the system tells.
    """

    pid: int
    name: str
    zombie: bool
    parent: int
    group: int
    session: int
    started: float
    cpu_seconds: float
    resident_bytes: int

    @property
    def key(self) -> tuple[int, float]:
        return self.pid, self.started


class Table:
    """All processes at one moment."""

    def __init__(self, rows: Iterator[ProcessRow]) -> None:
        self.rows = {row.pid: row for row in rows}
        self.taken_at = time.monotonic()

    @cached_property
    def children(self) -> dict[int, list[ProcessRow]]:
        """The direct children of each pid that has some."""
        found: dict[int, list[ProcessRow]] = {}
        for row in self.rows.values():
            found.setdefault(row.parent, []).append(row)
        return found

    def ancestors(self, pid: int) -> set[int]:
        """The parents of ``pid``, up to the first process."""
        found: set[int] = set()
        row = self.rows.get(pid)
        while row is not None and row.parent not in found:
            found.add(row.parent)
            row = self.rows.get(row.parent)
        return found


_latest: Table | None = None


def read_table(*, max_age_seconds: float = 0.0) -> Table:
    """Looks at all processes, or hands out the latest look if it is young enough."""
    global _latest
    latest = _latest
    if latest is None or time.monotonic() - latest.taken_at >= max_age_seconds:
        latest = _latest = Table(_rows_of_proc() if HAS_PROC else rows_of_psutil())
    return latest


def read_row(pid: int) -> ProcessRow | None:
    """One process, also a zombie; None if there is no such process."""
    return _row_of_proc(pid) if HAS_PROC else row_of_psutil(pid)


def now_as_started() -> float:
    """This moment, as :attr:`Row.started` of a process that starts now would be, or a tick less."""
    if HAS_PROC:
        return time.clock_gettime(time.CLOCK_BOOTTIME) - 1 / _TICKS_PER_SECOND
    return time.time()


def same_process(row: ProcessRow) -> bool:
    """Whether the pid still belongs to the process that the row was read from."""
    now = read_row(row.pid)
    return now is not None and abs(now.started - row.started) < _TICK_TOLERANCE_SECONDS


def _rows_of_proc() -> Iterator[ProcessRow]:
    for entry in os.listdir("/proc"):  # noqa: PTH208 - half the time of a look would go into Paths
        if entry.isdigit() and (row := _row_of_proc(int(entry))) is not None:
            yield row


def _row_of_proc(pid: int) -> ProcessRow | None:
    try:
        descriptor = os.open(f"/proc/{pid}/stat", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        text = os.read(descriptor, 4096)
    except OSError:  # it ended in between
        return None
    finally:
        os.close(descriptor)
    # The name stands in parentheses and may itself hold spaces and parentheses.
    opened, closed = text.find(b"("), text.rfind(b")")
    fields = text[closed + 2 :].split()
    if len(fields) < 22:
        return None
    return ProcessRow(
        pid=pid,
        name=text[opened + 1 : closed].decode(errors="replace"),
        zombie=fields[0] in (b"Z", b"X", b"x"),
        parent=int(fields[1]),
        group=int(fields[2]),
        session=int(fields[3]),
        started=int(fields[19]) / _TICKS_PER_SECOND,
        cpu_seconds=sum(map(int, fields[11:15])) / _TICKS_PER_SECOND,
        resident_bytes=max(0, int(fields[21])) * _PAGE_BYTES,
    )


def rows_of_psutil() -> Iterator[ProcessRow]:
    """The table on systems without ``/proc``; works, slower, wherever psutil does."""
    import psutil

    for pid in psutil.pids():
        if (row := row_of_psutil(pid)) is not None:
            yield row


def row_of_psutil(pid: int) -> ProcessRow | None:
    """Like :func:`read_row`; what another user's process does not tell is 0."""
    import psutil

    try:
        process = psutil.Process(pid)
        with process.oneshot():
            zombie = process.status() == psutil.STATUS_ZOMBIE
            cpu = resident = 0.0
            with suppress(psutil.AccessDenied, psutil.ZombieProcess):
                cpu = sum(process.cpu_times()[:4])
                resident = process.memory_info().rss
            return ProcessRow(
                pid=pid,
                name=process.name(),
                zombie=zombie,
                parent=process.ppid(),
                group=os.getpgid(pid),
                session=os.getsid(pid),
                started=process.create_time(),
                cpu_seconds=cpu,
                resident_bytes=int(resident),
            )
    except (psutil.Error, OSError):
        return None


# The two environment variables by which descendants are recognised after their parents are gone.

TRIAL_VARIABLE = "SKILLUP_TRIAL_MARKER"
OWNER_VARIABLE = "SKILLUP_OWNER"


def new_marker() -> str:
    """A marker nobody else has."""
    return f"{os.getpid()}-{secrets.token_hex(8)}"


def owner_id() -> str:
    """Our own value of ``SKILLUP_OWNER``: the same at every call, another one after a fork."""
    return _owner_id(os.getpid())


@lru_cache(maxsize=1)
def _owner_id(pid: int) -> str:
    row = read_row(pid)
    started = row.started if row else 0.0
    return f"{pid}-{started:.2f}-{secrets.token_hex(4)}"


def has_assignment(pid: int, assignment: bytes) -> bool:
    """Whether the environment that ``pid`` was started with holds ``NAME=value``.

    False where it may not be read: zombies, other users' processes, protected ones on macOS.
    """
    return assignment in _environment(pid)


def _environment(pid: int) -> list[bytes]:
    if HAS_PROC:
        try:
            return Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
        except OSError:
            return []
    import psutil

    try:
        variables = psutil.Process(pid).environ()
    except (psutil.Error, OSError):
        return []
    return [os.fsencode(f"{name}={value}") for name, value in variables.items()]


# Adopting orphans: on Linux a descendant whose parent died becomes a child of this process.

_PR_SET_CHILD_SUBREAPER = 36  # linux/prctl.h
_adopting: int | None = None
"""The process that does; the setting is not inherited over fork."""


def adopt_orphans(*, wanted: bool) -> None:
    """Makes orphaned descendants our children from now on, or no longer; if the system can."""
    global _adopting
    _adopting = None
    if sys.platform == "linux":
        import ctypes

        with suppress(OSError, AttributeError):  # no C library to ask, or one without prctl
            if ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, int(wanted), 0, 0, 0) == 0:
                _adopting = os.getpid() if wanted else None


def adopts_orphans() -> bool:
    """Whether orphaned descendants become children of this process."""
    return _adopting == os.getpid()


def keep_exit_statuses() -> None:
    """With SIGCHLD ignored (inherited from whoever started us) the kernel throws them away."""
    if (
        threading.current_thread() is threading.main_thread()
        and signal.getsignal(signal.SIGCHLD) == signal.SIG_IGN
    ):
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)


def reap(pid: int) -> float | None:
    """Clears away an ended child of ours; returns its CPU seconds, None if it was not one."""
    with suppress(ChildProcessError):
        found, _, usage = os.wait4(pid, os.WNOHANG)
        if found == pid:
            return usage.ru_utime + usage.ru_stime
    return None


# Held while a process starts and becomes known, and while the table is read for a final look: so a
# process started in one thread is never taken for an orphan by a look in another.
starting = threading.Lock()
_running: set[ProcessTree] = set()


class ProcessTree:
    """The processes of one turn, or with ``main`` None all that carry ``assignment``.

    ``assignment`` is the ``NAME=value`` that members inherit in their environment; processes older
    than ``started_after`` are not looked into. ``takes_orphans`` claims those that came to us and
    that no turn could claim because several were running.
    """

    def __init__(
        self,
        main: ProcessRow | None,
        assignment: bytes,
        *,
        started_after: float = 0.0,
        takes_orphans: bool = False,
    ) -> None:
        self.main = main
        self._takes_orphans = takes_orphans or main is not None
        self._created_at = time.monotonic()
        self.assignment = assignment
        self.started_after = main.started if main else started_after
        self.known: set[tuple[int, float]] = {main.key} if main else set()
        self._sessions: set[int] = {main.session} if main else set()
        self._orphan_cpu: dict[tuple[int, float], float] = {}
        self._quiet = False
        if main is not None:
            _running.add(self)

    @staticmethod
    def any_running() -> bool:
        """Whether some turn is being held."""
        return bool(_running)

    @staticmethod
    def all_running() -> list[ProcessTree]:
        """Those of all turns that are being held."""
        return list(_running)

    def close(self) -> None:
        """Forgets the turn: its processes are gone."""
        _running.discard(self)

    @property
    def orphan_cpu_seconds(self) -> float:
        """What members used that the main process did not wait for."""
        return sum(self._orphan_cpu.values())

    def sample(self) -> list[ProcessRow]:
        """The living members by a recent, cheap look; what is seen here is remembered."""
        # A look from before this turn would make us forget what we started since.
        age = min(0.2, time.monotonic() - self._created_at)
        table = read_table(max_age_seconds=age)
        members = self._members(table, final=False)
        self.known &= {row.key for row in table.rows.values()}
        self._sessions &= {row.session for row in table.rows.values()}
        return [row for row in members if not row.zombie]

    def living(self) -> list[ProcessRow]:
        """The living members by a fresh and thorough look, which also clears away dead orphans.

        A look takes a moment in which a member can fork and die, and both be missed. So nobody
        counts as left only after two looks in a row that found neither a living member nor a new
        dead one.
        """
        while True:
            with starting:
                table = read_table()
            members = self._members(table, final=True)
            alive = [row for row in members if not row.zombie]
            reaped = [row for row in members if self._reap(row)]
            was_quiet, self._quiet = self._quiet, not alive and not reaped
            if alive or (was_quiet and self._quiet):
                return alive

    def _members(self, table: Table, *, final: bool) -> list[ProcessRow]:
        own = table.rows.get(os.getpid())
        not_ours = table.ancestors(os.getpid()) | {os.getpid(), 0, 1}
        not_ours |= {tree.main.pid for tree in list(_running) if tree.main and tree is not self}
        found: dict[int, ProcessRow] = {}
        heads = [
            row
            for row in table.rows.values()
            if row.pid not in not_ours and self._is_head(row, own, final=final)
        ]
        while heads:
            row = heads.pop()
            if row.pid not in found:
                found[row.pid] = row
                heads += [c for c in table.children.get(row.pid, ()) if c.pid not in not_ours]
        self._remember(found, own)
        return list(found.values())

    def _is_head(self, row: ProcessRow, own: ProcessRow | None, *, final: bool) -> bool:
        if row.key in self.known:
            return True
        if row.started < self.started_after:
            return False
        if row.session in self._sessions:
            return not self._is_of_another(row)
        if not final:
            return False
        return has_assignment(row.pid, self.assignment) or self._is_unclaimed_orphan(row, own)

    def _is_unclaimed_orphan(self, row: ProcessRow, own: ProcessRow | None) -> bool:
        """Whether it came to us from a parent that died, and only this turn can have started it.

        We start every process in a session of its own; a child of ours in another session than ours
        that we did not start is an orphan. While an older turn still runs, it might be that one's.
        """
        return (
            self._takes_orphans
            and adopts_orphans()
            and own is not None
            and row.parent == own.pid
            and row.session != own.session
            and not any(row.key in tree.known for tree in list(_running) if tree is not self)
            and all(tree is self or tree.started_after > row.started for tree in list(_running))
            and not self._is_of_another(row)
        )

    def _is_of_another(self, row: ProcessRow) -> bool:
        """Whether it bears the marker of another running turn; any other may be made up."""
        others = [tree.assignment for tree in list(_running) if tree is not self]
        return any(has_assignment(row.pid, assignment) for assignment in others)

    def _remember(self, found: dict[int, ProcessRow], own: ProcessRow | None) -> None:
        for row in found.values():
            self.known.add(row.key)
            if own is None or row.session != own.session:
                self._sessions.add(row.session)
            is_main = self.main is not None and row.key == self.main.key
            if not is_main and row.parent not in found:
                self._orphan_cpu[row.key] = row.cpu_seconds

    def _reap(self, row: ProcessRow) -> bool:
        """Whether a dead member was an orphan of ours and is now cleared away."""
        if row.parent != os.getpid() or (self.main is not None and row.key == self.main.key):
            return False
        used = reap(row.pid)
        if used is not None:
            self._orphan_cpu[row.key] = used
        return used is not None
