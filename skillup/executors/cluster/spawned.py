"""A unit of work in a process of its own: what it says, and how it is brought to its end.

Not in the worker's process: there other people's tasks start processes, too, and skillup's care for
its own (it adopts orphans, and ends those that nobody else can have left) must not touch them.
"""

from __future__ import annotations

import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue

import skillup
from skillup.process.spawn import Apart, start_apart

NO_ROOM = 75
"""Exit code of a process whose machine has no room on its disk (``EX_TEMPFAIL`` of sysexits.h)."""

_POLL_SECONDS = 0.2
_PATIENCE_SECONDS = 30.0
_STDERR_BYTES = 4000

_PROGRAM = "import sys; sys.path.insert(0, {here!r}); from {module} import main; sys.exit(main())"


@dataclass(frozen=True, slots=True)
class Finished:
    """How the process ended; ``code`` as in :mod:`subprocess`: negative for a signal."""

    code: int
    said: str
    """The end of its stderr."""
    stopped: bool
    """Because it was not wanted any more."""


def run_apart(
    module: str,
    request: bytes,
    on_line: Callable[[bytes], None],
    wanted: Callable[[], bool],
    seconds: float | None = None,
    more: SimpleQueue[bytes | None] | None = None,
) -> Finished:
    """Run `module`'s ``main`` with `request` as the first line of its stdin; blocks until it ended.

    What is put into `more` meanwhile are further lines; at the end a None is put there. Once it is
    not `wanted` any more, or `seconds` have passed, it is told to stop (SIGINT), and killed if it
    does not.
    """
    here = str(Path(skillup.__file__).parent.parent)
    lines: SimpleQueue[bytes | None] = more if more is not None else SimpleQueue()
    argv = (sys.executable, "-P", "-c", _PROGRAM.format(here=here, module=module))
    with tempfile.TemporaryFile() as stderr:
        process = start_apart(argv, cwd=Path(here), stderr=stderr)
        reader = threading.Thread(target=_read, args=(process, on_line), daemon=True)
        reader.start()
        feeder = threading.Thread(target=_feed, args=(process, request, lines), daemon=True)
        feeder.start()
        stopped = _wait(process, wanted, seconds)
        lines.put(None)
        feeder.join(_PATIENCE_SECONDS)
        reader.join(_PATIENCE_SECONDS)
        length = stderr.seek(0, 2)
        stderr.seek(max(0, length - _STDERR_BYTES))
        said = stderr.read().decode(errors="replace").strip()
    return Finished(process.returncode, said, stopped)


def _wait(process: Apart, wanted: Callable[[], bool], seconds: float | None) -> bool:
    deadline = None if seconds is None else time.monotonic() + seconds
    told: float | None = None
    while process.poll() is None:
        late = deadline is not None and time.monotonic() > deadline
        if told is None and (late or not wanted()):
            told = time.monotonic()
            process.send_signal(signal.SIGINT)
        elif told is not None and time.monotonic() - told > _PATIENCE_SECONDS:
            process.kill()
        time.sleep(_POLL_SECONDS)
    return told is not None


def _feed(process: Apart, request: bytes, more: SimpleQueue[bytes | None]) -> None:
    assert process.stdin is not None
    line: bytes | None = request
    try:
        with process.stdin as stdin:
            while line is not None:
                stdin.write(line + b"\n")
                stdin.flush()
                line = more.get()
    except OSError:
        pass  # it has ended, and how it did says more


def _read(process: Apart, on_line: Callable[[bytes], None]) -> None:
    assert process.stdout is not None
    with process.stdout as stdout:
        for line in stdout:
            on_line(line)
