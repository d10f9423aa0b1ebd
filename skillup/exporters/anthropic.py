"""A run directory as a workspace of Anthropic's skill-creator, for its aggregator and viewer.

    OUT/benchmark.json
    OUT/eval-N/eval_metadata.json
    OUT/eval-N/CONFIGURATION/run-K/eval_metadata.json, grading.json, timing.json, outputs/…

Several suites or engines get a folder each, as there one workspace is about one skill. Source of
the format: skills/skill-creator/SKILL.md, references/schemas.md and scripts/aggregate_benchmark.py
in https://github.com/anthropics/skills.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from skillup.errors import UsageError
from skillup.frozen import frozen
from skillup.importers.write import slug, unique_name
from skillup.reports.benchmark import CONFIGURATIONS, GRADED, benchmark, runs_of
from skillup.reports.result import total_tokens
from skillup.schema.grade import Grade
from skillup.schema.record import Record
from skillup.store import RunDirectory
from skillup.store.files import no_mask, to_json
from skillup.workspace.disk import path_problem


@frozen
class Exported:
    directory: Path
    suite: str
    engine: str
    graded: int  # Trials with a verdict: only those are runs there
    others: int  # Trials that met an error or were skipped: named in the notes


def export_run(run: RunDirectory, out: Path) -> list[Exported]:
    """Write the finished trials of `run` below `out`, which must be new or empty.

    Raises UsageError if it is not or cannot be written, and if no trial of the run has a grade.
    """
    finished = run.finished_jobs()
    planned = [job for job in run.run_info().get("jobs", []) if job in finished]
    groups: dict[tuple[str, str], list[tuple[str, Grade]]] = {}
    for job in dict.fromkeys([*planned, *sorted(finished)]):
        grade = run.read_grade(job)
        # Of a grade from elsewhere the variant may be anything, also a way out of the folder.
        if grade is not None and grade.variant in CONFIGURATIONS:
            groups.setdefault((grade.suite, grade.engine), []).append((job, grade))
    if not groups:
        raise UsageError(
            f"{run.path}: none of its trials has a grade",
            hint=f"finish it with `skillup run --resume {run.path}`, then export it",
        )
    try:
        if out.exists() and (not out.is_dir() or any(out.iterdir())):
            raise UsageError(f"{out}: already there", hint="choose another --out")
        taken: set[str] = set()
        exported = []
        for (suite, engine), members in groups.items():
            name = unique_name(f"{slug(suite, 'suite')}-{slug(engine, 'engine')}", taken)
            exported.append(_export(run, out / name if len(groups) > 1 else out, members))
    except OSError as error:
        raise UsageError(
            f"cannot write {error.filename}: {error.strerror}", hint="choose another --out"
        ) from error
    return exported


def _export(run: RunDirectory, out: Path, members: Sequence[tuple[str, Grade]]) -> Exported:
    runs = runs_of([grade for _, grade in members])
    # With leading zeros, so that the order of names is the order of numbers.
    eval_digits = len(str(max(entry["eval_id"] for _, entry in runs)))
    run_digits = len(str(max(entry["run_number"] for _, entry in runs)))
    graded = 0
    first: Record | None = None
    for (job, _), (grade, entry) in zip(members, runs, strict=True):
        record = run.read_record(job)
        first = first or record
        home = out / f"eval-{entry['eval_id']:0{eval_digits}}"
        where = home / entry["configuration"] / f"run-{entry['run_number']:0{run_digits}}"
        if grade.status in GRADED:
            graded += 1
            _write_trial(where, record, grade, entry, run)
        prompts = [turn.content for turn in grade.turns]
        if len(prompts) > 1:
            prompts = [f"Turn {n}: {text}" for n, text in enumerate(prompts, start=1)]
        metadata = {
            "eval_id": entry["eval_id"],
            "eval_name": entry["eval_name"],
            "prompt": "\n\n".join(prompts),
            "assertions": [expected["text"] for expected in entry["expectations"]],
        }
        # The aggregator looks for it above the runs, the viewer beside each.
        for folder in (home, where) if where.exists() else (home,):
            folder.mkdir(parents=True, exist_ok=True)
            _write_json(folder / "eval_metadata.json", metadata)
    skills = [s.name for s in first.skills if s.role == "under_test"] if first else []
    # What answered, as the engine names it; else what the profile asks for.
    models = [turn.model for turn in first.turns if turn.model] if first else []
    data = benchmark(
        runs,
        timestamp=str(run.run_info().get("started_at", "")),
        skill_name=", ".join(skills),
        skill_path=first.suite_root if first else "",
        model=models[0] if models else (first and first.engine.model) or "",
    )
    _write_json(out / "benchmark.json", data)
    grade = members[0][1]
    return Exported(out, grade.suite, grade.engine, graded, len(members) - graded)


def _write_trial(
    where: Path, record: Record, grade: Grade, entry: dict[str, Any], run: RunDirectory
) -> None:
    """One trial as a run of skill-creator; its calls, and those in vain, come into `entry`."""
    outputs = where / "outputs"
    outputs.mkdir(parents=True)
    size = _write_files(outputs, record, run)
    items = [item for message in record.executed() for item in message.transcript]
    called = Counter(item.tool_call.name for item in items if item.tool_call is not None)
    failed = sum(i.tool_result is not None and i.tool_result.status == "error" for i in items)
    result, tokens = entry["result"], total_tokens(grade.usage)
    summary = {name: result[name] for name in ("passed", "failed", "total", "pass_rate")}
    result |= {"tool_calls": called.total(), "errors": failed}
    metrics = {
        "tool_calls": dict(called),
        "total_tool_calls": called.total(),
        "total_steps": sum(item.type == "message" for item in items),
        "errors_encountered": failed,
    }
    timing = {
        "duration_ms": grade.duration_ms,
        "total_duration_seconds": result["time_seconds"],
        "executor_start": record.started_at,
    }
    if tokens is not None:  # else the aggregator would take characters
        metrics["output_chars"], timing["total_tokens"] = size, tokens
    grading = {
        "expectations": entry["expectations"],
        "summary": summary,
        "execution_metrics": metrics,
        "timing": {"executor_duration_seconds": result["time_seconds"]},
        "claims": [],
        "user_notes_summary": {
            "uncertainties": entry["notes"],
            "needs_review": [],
            "workarounds": [],
        },
    }
    _write_json(where / "timing.json", timing)
    _write_json(where / "grading.json", grading)


def _write_files(outputs: Path, record: Record, run: RunDirectory) -> int:
    """The files that the agent made or changed, and its last answer; how many bytes they are."""
    before = record.initial_files or {}
    snapshots = [turn.files for turn in record.turns if turn.files is not None]
    size = 0
    for name, state in snapshots[-1].items() if snapshots else ():
        changed = state != before.get(name) and state.sha256
        content = run.blobs.read_state(state) if changed else None
        path = outputs / name
        if content is not None and path_problem(name) is None:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
            size += len(content)
    answer = record.turns[-1].last_answer().response if record.turns else ""
    if answer:  # the viewer shows files only
        there = {path.stem.casefold() for path in outputs.glob("*.md")}
        name = f"{unique_name('answer', there)}.md"
        (outputs / name).write_bytes(answer.encode("utf-8", "replace"))
        size += len(answer)
    return size


def _write_json(path: Path, data: Mapping[str, Any]) -> None:
    path.write_bytes(to_json(data, no_mask, indent=2))
