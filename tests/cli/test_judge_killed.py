"""`skillup judge`, killed while a script judges: the next start ends and removes what is left."""

from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path

import pytest

from tests.support.project import GUARD_SECONDS, Project

# It writes its own number and that of a child that hides from it; both ignore requests to end.
SCRIPT = """#!/bin/sh
[ -f "$EVAL_SUITE_ROOT/slow" ] || exit 0
trap '' TERM INT
(trap '' TERM INT HUP; exec sleep 900) &
echo $$ $! > "$EVAL_SUITE_ROOT/started.new"
mv "$EVAL_SUITE_ROOT/started.new" "$EVAL_SUITE_ROOT/started"
sleep 900
"""


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    status = Path(f"/proc/{pid}/stat")
    return not status.exists() or ") Z " not in status.read_text()


@pytest.mark.slow
def test_the_next_start_ends_what_a_killed_judging_left(tmp_path: Path) -> None:
    project = Project(tmp_path)
    case = {
        "input": {"turns": [{"content": "x", "assertions": [{"script": "s/check.sh"}]}]},
        "scripted": [{"say": "ok"}],
    }
    project.write({"cases/eval.yaml": "name: s\n", "cases/a.yaml": json.dumps(case)})
    project.write({"cases/s/check.sh": SCRIPT})
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    env = {"TMPDIR": str(temporary)}
    assert project.run("run", "cases", "--out", "run", env=env).exit_code == 0
    slow, started = project.root / "cases" / "slow", project.root / "cases" / "started"
    slow.touch()
    with project.start("judge", "run", env=env) as judging:
        until = time.monotonic() + GUARD_SECONDS
        while not started.exists() and judging.poll() is None and time.monotonic() < until:
            time.sleep(0.05)
        judging.send_signal(signal.SIGKILL)
        judging.wait()
    left = [int(pid) for pid in started.read_text().split()]
    assert all(alive(pid) for pid in left)
    slow.unlink()

    outcome = project.run("judge", "run", env=env)

    assert outcome.exit_code == 0, outcome.stderr
    assert not any(alive(pid) for pid in left)
    assert not list((project.home / ".cache" / "skillup" / "processes").glob("*.json"))
