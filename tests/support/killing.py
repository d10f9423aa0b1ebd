"""A run that is killed, as `kill -9` does it, at a moment that lots decide."""

from __future__ import annotations

import random
import time
from pathlib import Path

from tests.support.project import GUARD_SECONDS, Project


def killed(
    project: Project, run: Path, arguments: list[str], lots: random.Random, longest: float = 0.3
) -> bool:
    """Starts it, and kills it: in one of five while it starts, else while it holds trials.

    That is up to `longest` seconds after it has opened its run directory; False: it had ended.
    """
    before = opened(run)
    with project.start(*arguments) as process:
        end = time.monotonic() + GUARD_SECONDS
        at_once = lots.random() < 0.2
        while not at_once and opened(run) == before and process.poll() is None:
            assert time.monotonic() < end
            time.sleep(0.005)
        time.sleep(lots.uniform(0.0, longest))
        alive = process.poll() is None
        process.kill()
        process.wait()
    return alive


def opened(run: Path) -> int:
    """How often the run has been made or opened, as its journal says."""
    journal = run / "events.jsonl"
    text = journal.read_bytes() if journal.exists() else b""
    return text.count(b'"run_created"') + text.count(b'"run_reopened"')
