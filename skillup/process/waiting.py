"""Waiting for the end of a child: how it ended, and what the kernel says it used."""

from __future__ import annotations

import math
import os
import sys
from contextlib import suppress
from dataclasses import dataclass

import anyio
import anyio.to_thread

from skillup.process.spawn import Child


@dataclass(frozen=True, slots=True)
class Ended:
    """``returncode`` as in :mod:`subprocess`: negative for a signal; None if it got lost."""

    returncode: int | None
    cpu_seconds: float | None


async def wait_until_ended(child: Child) -> Ended:
    """Waits, and clears the ended process away.

    Linux tells by a descriptor; elsewhere a thread of its own waits, which ends with the child.
    """
    descriptor = _descriptor_of(child.pid)
    if descriptor is None:
        limiter = anyio.CapacityLimiter(math.inf)
        return await anyio.to_thread.run_sync(
            _collect, child, abandon_on_cancel=True, limiter=limiter
        )
    try:
        await anyio.wait_readable(descriptor)
    finally:
        os.close(descriptor)
    return _collect(child)


def _descriptor_of(pid: int) -> int | None:
    if sys.platform == "linux":
        with suppress(OSError):  # kernels before 5.3, and sandboxes that forbid it
            return os.pidfd_open(pid)
    return None


def _collect(child: Child) -> Ended:
    try:
        _, status, usage = os.wait4(child.pid, 0)
    except ChildProcessError:  # someone else in this program waited for it
        child.popen.returncode = 255
        return Ended(None, None)
    # Popen must know, or it warns and goes on asking for a pid that is no longer ours.
    child.popen.returncode = os.waitstatus_to_exitcode(status)
    return Ended(child.popen.returncode, usage.ru_utime + usage.ru_stime)
