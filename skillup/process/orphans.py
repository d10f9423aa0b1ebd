"""Adopting orphans: on Linux a descendant whose parent died becomes a child of this process.

That is what the kernel calls a child subreaper. It keeps a turn's processes findable after their
parents are gone, but it also makes us the one who must wait for them, or they stay as zombies. It
is for processes of skillup's own: in a host program (pytest, a library's user) it would bring us
the daemons that others start, and nobody could tell whose they are.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from contextlib import suppress

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
