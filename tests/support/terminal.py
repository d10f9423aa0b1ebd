"""The command on a terminal of its own, as a person has it: a pseudo-terminal and what it shows."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from tests.support.project import GUARD_SECONDS


class Terminal:
    """A running command; :meth:`until` waits for what it shows, :meth:`type` presses keys."""

    def __init__(self, process: subprocess.Popen[bytes], master: int) -> None:
        self.process = process
        self.shown = ""
        self._master = master

    def until(self, text: str) -> str:
        """Everything that was shown, once `text` is in it."""
        deadline = time.monotonic() + GUARD_SECONDS
        while text not in self.shown:
            assert time.monotonic() < deadline, self.shown
            if not self._read():
                break
        assert text in self.shown, self.shown
        return self.shown

    def type(self, keys: str) -> None:
        r"""``\x03`` is Ctrl-C."""
        os.write(self._master, keys.encode())

    def ends(self) -> int:
        """Its exit code, once it has ended; `shown` has all that it printed."""
        while self._read():
            pass
        return self.process.wait(GUARD_SECONDS)

    def _read(self) -> bool:
        ready, _, _ = select.select([self._master], [], [], GUARD_SECONDS)
        assert ready, f"silent: {self.shown}"
        try:
            data = os.read(self._master, 65536)
        except OSError:  # so Linux says that nobody has the other end open any more
            return False
        self.shown += data.decode(errors="replace")
        return bool(data)


@contextmanager
def on_a_terminal(
    *arguments: str, cwd: Path, env: Mapping[str, str], columns: int = 100, rows: int = 24
) -> Iterator[Terminal]:
    """`skillup ARGUMENTS` on a terminal of that size; killed if the test fails."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    process = subprocess.Popen(
        [sys.executable, "-m", "skillup", *arguments],
        cwd=cwd,
        env={**env, "TERM": env.get("TERM", "xterm-256color")},
        stdin=slave,
        stdout=slave,
        stderr=slave,
        start_new_session=True,
        # So that Ctrl-C, typed here, becomes a signal there.
        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
    )
    os.close(slave)
    try:
        yield Terminal(process, master)
    finally:
        if process.poll() is None:
            process.kill()
        process.wait(GUARD_SECONDS)
        os.close(master)
