"""How long a run with large workspaces keeps its event loop busy at a time.

    python -m tests.benchmarks.bench_loop [TRIALS [FILES [PARALLEL]]]

It prints the ten largest gaps between two turns of the loop, in milliseconds: those of the clock,
which on a machine with other work show that work, too, and those of the loop's own processor time.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

CASE = """
context: {fixture: many}
input: {turns: [one, two]}
assertions: [{contains: done}, {files_exist: [d000/f00000.txt]}]
scripted: [{say: done}, {say: done}]
"""
PROGRAM = """
import asyncio, json, sys, time
from asyncio import events
from pathlib import Path

make, clock, busy = events.new_event_loop, [], []

def watched():
    loop = make()
    def look(due, before):
        clock.append(loop.time() - due)
        busy.append(time.thread_time() - before)
        loop.call_later(0.001, look, loop.time() + 0.001, time.thread_time())
    loop.call_soon(look, loop.time(), time.thread_time())
    return loop

events.new_event_loop = watched
from skillup.__main__ import main
sys.argv = ["skillup", "run", "cases", "-q", *sys.argv[1:]]
try:
    main()
finally:
    from skillup.workspace.snapshot import BlobStore, take_snapshot
    before = time.thread_time()
    take_snapshot(Path("cases/many"), BlobStore())
    largest = [sorted(gaps, reverse=True)[:10] for gaps in (clock, busy)]
    print(json.dumps([*largest, time.thread_time() - before]), file=sys.stderr)
"""


class Lag(NamedTuple):
    """The ten largest gaps, in seconds; what a look at a workspace takes in the same thread."""

    clock: list[float]
    busy: list[float]
    scan: float


def measured(folder: Path, trials: int, files: int, parallel: int) -> Lag:
    """Of a run in `folder`, each of whose workspaces holds so many files."""
    for number in range(files):
        file = folder / f"cases/many/d{number // 300:03}/f{number:05}.txt"
        if number % 300 == 0:
            file.parent.mkdir(parents=True)
        file.write_text(f"{number}\n")
    (folder / "cases").mkdir(exist_ok=True)
    (folder / "cases/eval.yaml").write_text("name: large\n")
    for number in range(trials):
        (folder / f"cases/c{number:03}.yaml").write_text(CASE)
    own = {"PYTHONPATH": os.pathsep.join(sys.path), "HOME": str(folder), "SKILLUP_INDEX": "none"}
    command = [sys.executable, "-c", PROGRAM, "-e", "scripted", "-j", str(parallel)]
    done = subprocess.run(
        command, cwd=folder, env={**os.environ, **own}, capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise RuntimeError(f"{done.stdout}\n{done.stderr}")
    return Lag(*json.loads(done.stderr.splitlines()[-1]))


def main(arguments: Sequence[str]) -> None:
    trials, files, parallel = (*map(int, arguments), *(200, 30_000, 4)[len(arguments) :])
    with tempfile.TemporaryDirectory() as name:
        lag = measured(Path(name).resolve(), trials, files, parallel)
    for what, gaps in (("clock", lag.clock), ("processor time", lag.busy)):
        print(f"{what}:", " ".join(f"{gap * 1000:.0f}" for gap in gaps), "ms")
    print(f"a look at one workspace: {lag.scan * 1000:.0f} ms of processor time")


if __name__ == "__main__":
    main(sys.argv[1:])
