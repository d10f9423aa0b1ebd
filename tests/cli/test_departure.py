"""A second Ctrl-C: skillup leaves, whatever holds it up."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.support.project import GUARD_SECONDS

# The main thread is what a defect would hold up; `abandon` is a terminal.
PROGRAM = """
import threading
from skillup.app.shutdown import Shutdown

class Watching:
    def stopping(self, times): print("stopping", times, flush=True)
    def abandon(self): {abandon}

shutdown = Shutdown(Watching(), "skillup run --resume /runs/1", patience_seconds=0)
for _ in range(3):
    shutdown.signalled()
threading.Event().wait()
"""


@pytest.mark.parametrize(
    ("abandon", "said"),
    [
        ("pass", "interrupted; go on with: skillup run --resume /runs/1\n"),
        ("threading.Event().wait()", ""),
        ("raise BrokenPipeError", ""),
    ],
)
def test_it_leaves_even_if_the_terminal_takes_nothing(abandon: str, said: str) -> None:
    program = PROGRAM.replace("{abandon}", abandon)
    ended = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        timeout=GUARD_SECONDS,
        check=False,
    )

    assert ended.returncode == 130
    assert ended.stdout == "stopping 1\nstopping 2\n"
    assert ended.stderr == said
