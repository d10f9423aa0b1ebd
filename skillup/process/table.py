"""The process table: one cheap look at every process of the machine.

Linux: ``/proc/<pid>/stat`` (proc_pid_stat(5)), one read of some microseconds per process; dozens of
concurrent turns share one look. Elsewhere: psutil, which tells the same and costs more.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

HAS_PROC = Path("/proc/self/stat").exists()
_TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
_TICK_TOLERANCE_SECONDS = 0.005


class Row(NamedTuple):
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

    def __init__(self, rows: Iterator[Row]) -> None:
        self.rows = {row.pid: row for row in rows}
        self.taken_at = time.monotonic()

    @cached_property
    def children(self) -> dict[int, list[Row]]:
        """The direct children of each pid that has some."""
        found: dict[int, list[Row]] = {}
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


def read_row(pid: int) -> Row | None:
    """One process, also a zombie; None if there is no such process."""
    return _row_of_proc(pid) if HAS_PROC else row_of_psutil(pid)


def now_as_started() -> float:
    """This moment, as :attr:`Row.started` of a process that starts now would be, or a tick less."""
    if HAS_PROC:
        return time.clock_gettime(time.CLOCK_BOOTTIME) - 1 / _TICKS_PER_SECOND
    return time.time()


def same_process(row: Row) -> bool:
    """Whether the pid still belongs to the process that the row was read from."""
    now = read_row(row.pid)
    return now is not None and abs(now.started - row.started) < _TICK_TOLERANCE_SECONDS


def _rows_of_proc() -> Iterator[Row]:
    for entry in os.listdir("/proc"):  # noqa: PTH208 - half the time of a look would go into Paths
        if entry.isdigit() and (row := _row_of_proc(int(entry))) is not None:
            yield row


def _row_of_proc(pid: int) -> Row | None:
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
    return Row(
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


def rows_of_psutil() -> Iterator[Row]:
    """The table on systems without ``/proc``; works, slower, wherever psutil does."""
    import psutil

    for pid in psutil.pids():
        if (row := row_of_psutil(pid)) is not None:
            yield row


def row_of_psutil(pid: int) -> Row | None:
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
            return Row(
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
