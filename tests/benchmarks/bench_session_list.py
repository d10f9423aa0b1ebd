"""What listing sessions costs, and what reading a large one needs.

    python -m tests.benchmarks.bench_session_list [COUNT] [MEGABYTES]

Ratios to looking at the directory entries alone, as times differ from machine to machine; memory
is the peak of what Python allocated.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from skillup.sessions.index import (
    detect_format,
    newest_heads,
    session_files,
    session_homes,
)

_PER_PROJECT = 100


def seconds(work: Callable[[], object]) -> float:
    """The best of three."""
    best = float("inf")
    for _ in range(3):
        start = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - start)
    return best


def rows(number: int, turns: int, filler: str = "") -> list[dict[str, Any]]:
    """A small session of Claude Code."""
    found: list[dict[str, Any]] = []
    for turn in range(turns):
        for kind, content in (
            ("user", f"Question {turn} {filler}"),
            ("assistant", [{"type": "text", "text": f"Answer {turn} {filler}"}]),
        ):
            place = len(found)
            row = {
                "type": kind,
                "uuid": f"{number}-{place}",
                "parentUuid": f"{number}-{place - 1}" if place else None,
                "timestamp": "2026-01-01T00:00:00.000Z",
                "sessionId": f"s{number}",
                "cwd": f"/projects/{number // _PER_PROJECT}",
                "version": "2.1.0",
                "message": {"role": kind, "content": content, "id": f"m{place}", "model": "x"},
            }
            found.append(row)
    return found


def write_sessions(home: Path, count: int) -> None:
    """`count` sessions in projects of 100."""
    for number in range(count):
        project = home / "projects" / f"-projects-{number // _PER_PROJECT}"
        project.mkdir(parents=True, exist_ok=True)
        text = "".join(json.dumps(row) + "\n" for row in rows(number, 3))
        (project / f"s{number}.jsonl").write_text(text, "utf-8")


def stat_all(home: Path) -> int:
    """The least that any listing has to do."""
    total = 0
    for project in os.scandir(home / "projects"):
        total += sum(entry.stat().st_size for entry in os.scandir(project))
    return total


def listed(homes: Mapping[str, Path], project: Path | None, limit: int) -> int:
    """What `skillup session list` does before it prints; how many it found."""
    return len(newest_heads(session_files(homes), project, limit))


def main(arguments: Sequence[str]) -> None:
    """Measure and print."""
    count = int(arguments[0]) if arguments else 10_000
    megabytes = int(arguments[1]) if len(arguments) > 1 else 100
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        write_sessions(home, count)
        homes = session_homes({"CLAUDE_CONFIG_DIR": folder, "CODEX_HOME": f"{folder}/none"})
        last = Path(f"/projects/{(count - 1) // _PER_PROJECT}")
        base = seconds(lambda: stat_all(home))
        print(f"{count} files; scandir and stat: {base:.3f} s")
        for name, project, limit in [
            ("the newest 20", None, 20),
            ("20 of one project", last, 20),
            ("none of a project", Path("/nowhere"), 20),
            ("all of them", None, count),
        ]:
            cost = seconds(partial(listed, homes, project, limit))
            print(f"{name:>20}: {cost:.3f} s, {cost / base:.1f} x")
        large = home / "large.jsonl"
        with large.open("w", encoding="utf-8") as file:
            number = 0
            while file.tell() < megabytes << 20:
                file.writelines(json.dumps(row) + "\n" for row in rows(number, 100, "x" * 1000))
                number += 1
        measure_memory(large)


def measure_memory(path: Path) -> None:
    """Reads one file to the end."""
    format_ = detect_format(path)
    assert format_ is not None
    tracemalloc.start()
    entries = sum(1 for _ in format_.reader().read(path))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    size = path.stat().st_size
    print(f"{size >> 20} MB, {entries} entries: peak {peak / 2**20:.1f} MB, {peak / size:.3f} x")


if __name__ == "__main__":
    main(sys.argv[1:])
