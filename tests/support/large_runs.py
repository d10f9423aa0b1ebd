"""Runs of many cases on disk, with conversations of about the length that agents' have."""

from __future__ import annotations

import random
from pathlib import Path

from skillup.judges import grade_record
from skillup.reports.result import build_result
from skillup.schema.grade import Grade
from skillup.schema.record import (
    EngineInfo,
    Record,
    TranscriptItem,
    TurnRecord,
    Usage,
    WorkspaceChanges,
)
from skillup.store import RunDirectory
from tests.support.records import call, make_record, make_turn

_LETTERS = "etaoinshrdlucmfwypvbgkqjxz"
STARTED = "2026-01-01T00:00:00.000Z"


class Writer:
    """Makes up words, sentences and files, the same ones for the same seed."""

    def __init__(self, seed: int) -> None:
        self._lots = random.Random(seed)
        weights = range(len(_LETTERS), 0, -1)
        self._words = [
            "".join(self._lots.choices(_LETTERS, weights, k=self._lots.randint(2, 9)))
            for _ in range(4000)
        ]

    def text(self, words: int) -> str:
        return " ".join(self._lots.choices(self._words, k=words))

    def turn(self, number: int, *, tools: int, output: int) -> TurnRecord:
        """A turn with `tools` calls, each with so many words of `output`."""
        answer = f"{self.text(120)} confirmed {self.text(30)}"
        made = make_turn(
            answer,
            content=self.text(30),
            calls=[call("Bash", "shell", command=self.text(12)) for _ in range(tools)],
            results=[self.text(output) for _ in range(tools)],
            cost_usd=0.01,
            duration_ms=1500,
            session_id="s",
            session_verified=True if number > 1 else None,
            usage=Usage(input_tokens=1200, output_tokens=80),
            model="some-model",
            started_at=STARTED,
            changes=WorkspaceChanges(added=[f"data/{number}.txt"], diff=f"+{self.text(60)}\n"),
        )
        thought = TranscriptItem(type="reasoning", text=self.text(60))
        message = TranscriptItem(type="message", text=answer)
        return made.model_copy(update={"transcript": [thought, *made.transcript, message]})


def write_large_run(
    path: Path, cases: int, *, turns: int = 5, tools: int = 3, output: int = 150, seed: int = 1
) -> Path:
    """A finished run of so many cases; every tenth fails."""
    writer = Writer(seed)
    jobs = [f"case-{n:04d}/lab/with_skill/1" for n in range(1, cases + 1)]
    labels = {job.partition("/")[0]: job.partition("/")[0] for job in jobs}
    info = {
        "run_id": path.name,
        "started_at": STARTED,
        "skillup_version": "0",
        "jobs": jobs,
        "suites": {"large": {"cases": labels}},
        "profiles": {"lab": {"engine": "claude_code", "model": "some-model"}},
    }
    grades: dict[str, Grade] = {}
    with RunDirectory.create(path, info) as run:
        for number, job in enumerate(jobs, start=1):
            record = _record(writer, number, job.partition("/")[0], turns, tools, output)
            graded = grade_record(record, run.blobs.read_state)
            grades[job] = graded.model_copy(update={"turns": [], "assertions": []})
            run.write_record(job, record)
            run.write_grade(job, graded)
        run.write_result(build_result(path.name, STARTED, list(grades.values()), [], 60_000))
    return path


def _record(
    writer: Writer, number: int, case_id: str, turns: int, tools: int, output: int
) -> Record:
    wanted = "never said" if number % 10 == 0 else "confirmed"
    checks = [{"contains": wanted}, {"tool_called": {"kind": "shell"}}, {"matches": r"\bconf\w+"}]
    checks = checks if tools else checks[:1]
    turns_of_case = [{"content": "x", "assertions": checks} for _ in range(turns)]
    case = {"id": case_id, "title": writer.text(6), "tags": [f"tag-{number % 7}"]}
    held = make_record(
        *(writer.turn(n, tools=tools, output=output) for n in range(1, turns + 1)),
        run_id="large",
        suite="large",
        case_id=case_id,
        case={**case, "input": {"turns": turns_of_case}},
        engine=EngineInfo(profile="lab", adapter="claude_code", version="1.0"),
        started_at=STARTED,
        duration_ms=5000 + number,
        session_id="s",
    )
    return held.record
