"""What judging again costs, as a ratio to reading and JSON-parsing the same files.

    python -m tests.benchmarks.bench_judge [TRIALS]

Trials of three turns with files, as the store writes them. Times differ from machine to machine,
ratios much less; memory is the peak of the whole process while it judges, and what it was before.
"""

from __future__ import annotations

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
from skillup.judges import grade_record
from skillup.reports.rejudging import RejudgeCounts
from skillup.schema.record import (
    EngineInfo,
    FileState,
    Record,
    ToolCall,
    ToolResult,
    TranscriptItem,
    TurnRecord,
    Usage,
    WorkspaceChanges,
)
from skillup.store import RunDirectory
from skillup.store.files import no_mask, to_json

ROUNDS = 3

CASE = {
    "id": "bench",
    "title": "Deletes after asking",
    "input": {
        "turns": [
            {
                "content": "Delete all logs",
                "post_condition": {"must_contain_any": ["confirm"]},
                "assertions": [
                    {"contains": "three files"},
                    {"tool_called": {"kind": "shell"}},
                    {"tool_not_called": {"kind": "shell", "args": {"command": {"matches": "rm "}}}},
                ],
            },
            {"content": "Yes.", "assertions": [{"not_contains": "deleted"}]},
            {
                "content": "DELETE 3",
                "assertions": [{"files_not_exist": "data/*.log"}, {"matches": r"\bdone\b"}],
            },
        ]
    },
    "assertions": [
        {"tool_sequence": {"calls": [{"kind": "shell"}, {"kind": "shell"}], "mode": "in_order"}},
        {"files_exist": "README.md"},
    ],
}


def _turn(number: int, trial: int) -> TurnRecord:
    said = f"Trial {trial}: there are three files; please confirm, then it is done. " * 4
    files = {f"data/{n}.txt": FileState(sha256=f"{n:064x}", size=n) for n in range(10)}
    call = ToolCall(
        id=f"c{number}",
        name="Bash",
        kind="shell",
        arguments={"command": f"ls data | wc -l # {number}"},
    )
    result = ToolResult(call_id=f"c{number}", status="success", content="3\n" * 40)
    return TurnRecord(
        turn_number=number,
        status="completed",
        content=f"message {number}",
        response=said,
        transcript=[
            TranscriptItem(type="reasoning", text="I should look first. " * 10),
            TranscriptItem(type="tool_call", tool_call=call),
            TranscriptItem(type="tool_result", tool_result=result),
            TranscriptItem(type="message", text=said),
        ],
        post_condition_passed=True if number == 1 else None,
        session_id="s",
        session_verified=True if number > 1 else None,
        usage=Usage(input_tokens=1200, output_tokens=80),
        model="some-model",
        started_at="2026-01-01T00:00:00.000Z",
        duration_ms=1500,
        changes=WorkspaceChanges(added=[f"data/{number}.txt"]),
        files={"README.md": FileState(sha256="0" * 64, size=3), **files},
    )


def write_run(path: Path, trials: int) -> None:
    """A run of one case, held many times."""
    engine = EngineInfo(profile="lab", adapter="claude_code")
    jobs = [f"bench/lab/with_skill/{n}" for n in range(1, trials + 1)]
    with RunDirectory.create(path, {"run_id": "bench", "jobs": jobs}) as run:
        for number, job in enumerate(jobs, start=1):
            record = Record(
                run_id="bench",
                suite="bench",
                case_id="bench",
                case=CASE,
                engine=engine,
                trial=number,
                started_at="2026-01-01T00:00:00.000Z",
                duration_ms=5000,
                session_id="s",
                turns=[_turn(n, number) for n in (1, 2, 3)],
            )
            graded = grade_record(record, run.blobs.read_state)
            assert graded.status == "PASS", graded.reason
            # By itself, not through the store: ten thousand syncs would be what takes the time.
            directory = run.trial_directory(job)
            directory.mkdir(parents=True)
            (directory / "record.json").write_text(record.model_dump_json(), "utf-8")
            (directory / "grading.json").write_bytes(to_json(graded, no_mask, indent=2))
    (path / "events.jsonl").unlink()  # it would know of none of the records


def read_and_parse(path: Path) -> int:
    """The least that has to be done: every file of every trial read, and parsed as JSON."""
    count = 0
    for name in ("record.json", "grading.json"):
        for file in (path / "trials").rglob(name):
            json.loads(file.read_bytes())
            count += 1
    return count


def judge_again(path: Path) -> int:
    """What `skillup judge RUN --quiet` does before it prints."""
    tally = RejudgeCounts()
    with open_source(str(path)) as source:
        count = sum(1 for _ in Rejudging(RejudgeRequest(source)).judge(tally))
    assert tally.changed == 0
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
    """Of this process, since it began."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (1 << 20 if sys.platform == "darwin" else 1 << 10)


def main(trials: int) -> None:
    """Measure and print."""
    with tempfile.TemporaryDirectory() as folder:
        small, large = Path(folder, "small"), Path(folder, "large")
        write_run(small, 100)
        write_run(large, trials)
        judge_again(small)
        before = peak_megabytes()
        judge_again(large)
        after = peak_megabytes()
        base = "read and JSON-parsed"
        works: dict[str, Callable[[], object]] = {base: lambda: read_and_parse(large)}
        works["judged"] = lambda: judge_again(large)
        took = medians(works)
    print(f"{trials} trials of 3 turns; medians of {ROUNDS} rounds")
    for name, (wall, used) in took.items():
        ratios = f"{wall / took[base][0]:.2f} x, of the processor {used / took[base][1]:.2f} x"
        print(f"{name:<22}{wall:6.2f} s {trials / wall:6.0f} trials/s   {ratios}")
    print(f"peak memory of one process: {after:.0f} MB; after 100 trials {before:.0f} MB")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 2000)
