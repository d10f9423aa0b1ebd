"""A run directory as a workspace of Anthropic's skill-creator, for its aggregator and viewer.

    OUT/benchmark.json, benchmark.md
    OUT/eval-N/eval_metadata.json
    OUT/eval-N/CONFIGURATION/run-K/grading.json, timing.json, transcript.md, outputs/…

Several suites or engines get a folder each, as there one workspace is about one skill. Source of
the format: skills/skill-creator/SKILL.md, references/schemas.md and scripts/aggregate_benchmark.py
in https://github.com/anthropics/skills.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from skillup.errors import UsageError
from skillup.interop.draft import slug, unlike
from skillup.interop.skill_creator_run import Written, write_run
from skillup.reports.benchmark import (
    CONFIGURATIONS,
    Place,
    benchmark,
    eval_names,
    expectations,
    markdown_of,
    places,
)
from skillup.schema.grade import Grade
from skillup.schema.record import Record
from skillup.store import RunDirectory


@dataclass(frozen=True, slots=True)
class Exported:
    """What was written for one suite on one engine."""

    directory: Path
    suite: str
    engine: str
    graded: int
    """Trials with a verdict: only those are runs there."""
    others: int
    """Trials that met an error or were skipped: named in the notes."""


def export_run(run: RunDirectory, out: Path) -> list[Exported]:
    """Write the finished trials of `run` below `out`, which must be new or empty.

    Raises UsageError if it is not or cannot be written, and if no trial of the run has a grade.
    """
    graded = list(_graded(run))
    if not graded:
        raise UsageError(
            f"{run.path}: none of its trials has a grade",
            hint=f"finish it with `skillup run --resume {run.path}`, then export it",
        )
    groups: dict[tuple[str, str], list[tuple[str, Grade]]] = {}
    for job, grade in graded:
        groups.setdefault((grade.suite, grade.engine), []).append((job, grade))
    try:
        if out.exists() and (not out.is_dir() or any(out.iterdir())):
            raise UsageError(f"{out}: already there", hint="choose another --out")
        taken: set[str] = set()
        exported = []
        for (suite, engine), members in groups.items():
            name = unlike(f"{slug(suite, 'suite')}-{slug(engine, 'engine')}", taken)
            directory = out / name if len(groups) > 1 else out
            exported.append(_export(run, directory, members))
    except OSError as error:
        raise UsageError(
            f"cannot write {error.filename}: {error.strerror}", hint="choose another --out"
        ) from error
    return exported


def _graded(run: RunDirectory) -> Iterator[tuple[str, Grade]]:
    """In the order of the plan."""
    info = run.run_info()
    finished = run.finished_jobs()
    planned = [job for job in info.get("jobs", []) if job in finished]
    for job in dict.fromkeys([*planned, *sorted(finished)]):
        grade = run.read_grade(job)
        if grade is not None:
            yield job, grade


def _export(run: RunDirectory, out: Path, members: Sequence[tuple[str, Grade]]) -> Exported:
    grades = [grade for _, grade in members]
    placed = places(grades)
    names = eval_names(grades)
    eval_digits = len(str(len(names)))
    run_digits = len(str(max(place[2] for place, _ in placed)))
    calls: dict[Place, tuple[int, int]] = {}
    first: Record | None = None
    told: set[int] = set()
    for (job, _), (place, grade) in zip(members, placed, strict=True):
        record = run.read_record(job)
        first = first or record
        number, configuration, repetition = place
        # With leading zeros, so that the order of names is the order of numbers.
        home = out / f"eval-{number:0{eval_digits}}"
        if number not in told:
            told.add(number)
            home.mkdir(parents=True, exist_ok=True)
            _write_json(home / "eval_metadata.json", _metadata(number, names, grade))
        if grade.status in ("PASS", "FAIL"):
            # Of a grade from elsewhere it may be anything, also a way out of the folder.
            ours = configuration in CONFIGURATIONS
            folder = configuration if ours else slug(configuration, "variant")
            where = home / folder / f"run-{repetition:0{run_digits}}"
            written: Written = write_run(where, record, grade, run.blobs.read_state)
            calls[place] = written.tool_calls, written.failed_calls
    skills = [s.name for s in first.skills if s.role == "under_test"] if first else []
    data = benchmark(
        grades,
        timestamp=str(run.run_info().get("started_at", "")),
        skill_name=", ".join(skills),
        skill_path=first.suite_root if first else "",
        model=_model(first),
        tool_calls=calls,
    )
    _write_json(out / "benchmark.json", data)
    (out / "benchmark.md").write_bytes(f"{markdown_of(data)}\n".encode("utf-8", "replace"))
    return Exported(out, grades[0].suite, grades[0].engine, len(calls), len(grades) - len(calls))


def _model(record: Record | None) -> str:
    """What answered, as the engine names it; else what the profile asks for."""
    if record is None:
        return ""
    answered = (turn.model for turn in record.turns if turn.model)
    return next(answered, record.engine.model or "")


def _metadata(number: int, names: Sequence[str], grade: Grade) -> dict[str, Any]:
    prompts = [turn.content for turn in grade.turns]
    if len(prompts) > 1:
        prompts = [f"Turn {n}: {text}" for n, text in enumerate(prompts, start=1)]
    return {
        "eval_id": number,
        "eval_name": names[number - 1],
        "prompt": "\n\n".join(prompts),
        "assertions": [expected["text"] for expected in expectations(grade)],
    }


def _write_json(path: Path, data: Any) -> None:
    text = json.dumps(data, indent=2, ensure_ascii=False) + "\n"
    path.write_bytes(text.encode("utf-8", "replace"))
