"""Whether a run is being written just now, asked without taking its lock.

To take it, be it for a moment, could keep a `skillup run --resume` from starting.
"""

from __future__ import annotations

from pathlib import Path

from skillup.store.run_directory import LOCK_FILE

_CLOCKS_DIFFER_BY = 2.0
"""Seconds: when a process began is known to a hundredth at best, and file systems round."""


def writer_of(run: Path) -> int | None:
    """The process that holds the lock of the run directory; None if there is none on this machine.

    The file keeps the number of its last holder. A process of that number that began after the
    lock was taken is another one.
    """
    import psutil

    path = run / LOCK_FILE
    try:
        pid = int(path.read_bytes()[:32])
        taken = path.stat().st_mtime
        process = psutil.Process(pid)
        if process.status() == psutil.STATUS_ZOMBIE:
            return None
        return pid if process.create_time() <= taken + _CLOCKS_DIFFER_BY else None
    except (OSError, ValueError, psutil.Error):
        return None
