"""What judging again costs, as a ratio to reading and JSON-parsing the same records.

    python -m tests.benchmarks.bench_judge [TRIALS]

Trials of one turn with one check, then of three with three each, as the store writes them. Times
differ from machine to machine, ratios less; memory is the peak of the whole process.
"""

from __future__ import annotations

import gc
import json
import resource
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

from skillup.app.rejudge.judging import RejudgeRequest, Rejudging
from skillup.app.rejudge.sources import open_source
from skillup.store import RunDirectory
from tests.support.large_runs import write_large_run

ROUNDS = 3


def read_and_parse(path: Path) -> int:
    """The least to be done: every record and grade read and parsed as JSON; their bytes."""
    size = 0
    with RunDirectory.open(path) as run:
        for found in run.finished():
            for text in (found.record_json, found.grade_json or b"null"):
                json.loads(text)
                size += len(text)
    return size


def judge_again(path: Path) -> int:
    """What `skillup judge RUN --quiet` does before it prints."""
    judging = Rejudging(RejudgeRequest(open_source(str(path))))
    count = sum(1 for _ in judging.judge())
    assert judging.counts.changed == 0
    return count


def processor_seconds() -> float:
    """Of this process and of those that it started and that have ended."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def medians(works: dict[str, Callable[[], object]]) -> dict[str, tuple[float, float]]:
    """Of each work: seconds, and seconds of the processor, which other programs lengthen less.

    In turns, so that what else the machine does meets all of them.
    """
    taken: dict[str, list[tuple[float, float]]] = {name: [] for name in works}
    for _ in range(ROUNDS):
        for name, work in works.items():
            start = time.perf_counter(), processor_seconds()
            work()
            took = time.perf_counter() - start[0], processor_seconds() - start[1]
            taken[name].append(took)
    return {
        name: (median(wall for wall, _ in of), median(used for _, used in of))
        for name, of in taken.items()
    }


def peak_megabytes() -> float:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (1 << 20 if sys.platform == "darwin" else 1 << 10)


def measure(trials: int, turns: int, tools: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        small, large = Path(folder, "small"), Path(folder, "large")
        for place, number in ((small, 100), (large, trials)):
            write_large_run(place, number, turns=turns, tools=tools, output=40)
        judge_again(small)
        before = peak_megabytes()
        judge_again(large)
        after = peak_megabytes()
        base = "read and JSON-parsed"
        works: dict[str, Callable[[], object]] = {base: lambda: read_and_parse(large)}
        works["judged"] = lambda: judge_again(large)
        took = medians(works)
    checks = 3 if tools else 1
    print(f"{trials} trials of {turns} x {checks} checks; medians of {ROUNDS} rounds")
    for name, (wall, used) in took.items():
        ratios = f"{wall / took[base][0]:.2f} x, of the processor {used / took[base][1]:.2f} x"
        print(f"{name:<22}{wall:6.2f} s {trials / wall:6.0f} trials/s   {ratios}")
    print(f"peak memory of one process: {after:.0f} MB; after 100 trials {before:.0f} MB")


if __name__ == "__main__":
    gc.set_threshold(150_000, 20, 20)  # as the command does
    for turns, tools in ((1, 0), (3, 1)):
        measure(int(sys.argv[1]) if len(sys.argv) > 1 else 2000, turns, tools)
