"""What report.html of a large run costs: its size, its time as a ratio, and memory.

    python -m tests.benchmarks.bench_report [CASES]

Cases of five turns. Time is told as a ratio to reading and JSON-parsing the same records; memory is
the peak of the whole process, with two runs of which one is ten times as large.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

from skillup.reports.html.build import html_report
from tests.benchmarks.bench_judge import peak_megabytes, read_and_parse
from tests.support.large_runs import write_large_run

TURNS = 5


def measure(path: Path, cases: int) -> None:
    began = time.perf_counter()
    records = read_and_parse(path)
    between = time.perf_counter()
    size = len(html_report(path))
    base, took = between - began, time.perf_counter() - between
    print(
        f"{cases} cases of {TURNS} turns ({records / 1e6:.1f} MB of records and grades): "
        f"{size / 1e6:.2f} MB, {took:.2f} s = {took / base:.1f} x reading them, "
        f"peak memory {peak_megabytes():.0f} MB"
    )


def main(cases: int) -> None:
    """Measure and print: the smaller run first, because a peak never falls."""
    with tempfile.TemporaryDirectory() as folder:
        small = write_large_run(Path(folder, "small"), max(1, cases // 10), turns=TURNS)
        large = write_large_run(Path(folder, "large"), cases, turns=TURNS)
        long = write_large_run(Path(folder, "long"), cases, turns=TURNS, tools=8, output=600)
        for path, count in ((small, max(1, cases // 10)), (large, cases), (long, cases)):
            measure(path, count)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 500)
