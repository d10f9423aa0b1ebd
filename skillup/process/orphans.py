"""Adopting orphans: on Linux a descendant whose parent died becomes a child of this process.

That is what the kernel calls a child subreaper. It keeps a turn's processes findable after their
parents are gone, but it also makes us the one who must wait for them, or they stay as zombies.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from contextlib import suppress
from functools import lru_cache

_PR_SET_CHILD_SUBREAPER = 36  # linux/prctl.h


def adopt_orphans() -> bool:
    """Makes orphaned descendants our children from now on; False where the system cannot."""
    return _adopt_orphans(os.getpid())  # the setting is not inherited over fork


@lru_cache(maxsize=1)
def _adopt_orphans(_pid: int) -> bool:
    # With SIGCHLD ignored (inherited from whoever started us) the kernel throws exit statuses away.
    if (
        threading.current_thread() is threading.main_thread()
        and signal.getsignal(signal.SIGCHLD) == signal.SIG_IGN
    ):
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    if sys.platform == "linux":
        import ctypes

        with suppress(OSError, AttributeError):  # no C library to ask, or one without prctl
            return bool(ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0)
    return False


def reap(pid: int) -> float | None:
    """Clears away an ended child of ours; returns its CPU seconds, None if it was not one."""
    with suppress(ChildProcessError):
        found, _, usage = os.wait4(pid, os.WNOHANG)
        if found == pid:
            return usage.ru_utime + usage.ru_stime
    return None
