"""Anthropic's skill-creator: a run as its `benchmark.json`, or as a workspace for its tools.

    OUT/benchmark.json
    OUT/eval-N/eval_metadata.json
    OUT/eval-N/CONFIGURATION/run-K/eval_metadata.json, grading.json, timing.json, outputs/…

Several suites or engines get a folder each, as there one workspace is about one skill; trials
without a verdict are no runs there, and are named in the notes. Source of the formats:
skills/skill-creator/SKILL.md, references/schemas.md and what scripts/aggregate_benchmark.py makes
of a directory of runs, in https://github.com/anthropics/skills.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from skillup.errors import UsageError
from skillup.importers.write import slug, unique_name
from skillup.reports.result import total_tokens
from skillup.schema.grade import Grade, RunResult
from skillup.schema.record import Record
from skillup.store import RunDirectory
from skillup.store.files import no_mask, to_json
from skillup.workspace.disk import path_problem

CONFIGURATIONS = ("with_skill", "without_skill")
GRADED = ("PASS", "FAIL")
_METRICS = {"pass_rate": "+.2f", "time_seconds": "+.1f", "tokens": "+.0f"}
"""Name, and the form of a difference."""

Run = tuple[Grade, dict[str, Any]]  # A trial, and what `runs` has of it


def benchmark_json(result: RunResult) -> str:
    known = [grade for grade in result.cases if grade.variant in CONFIGURATIONS]
    data = benchmark(runs_of(known), timestamp=result.started_at)
    return to_json(data, no_mask, indent=2).decode()


def runs_of(grades: Sequence[Grade]) -> list[Run]:
    """Every trial as a run; where a case ran on several engines, its runs go on."""
    several = len({grade.suite for grade in grades}) > 1
    ids: dict[str, int] = {}
    taken: Counter[tuple[int, str]] = Counter()
    found: list[Run] = []
    for grade in grades:
        name = f"{grade.suite}/{grade.case_id}" if several else grade.case_id
        key = (ids.setdefault(name, len(ids) + 1), grade.variant)
        taken[key] += 1
        expected = _expectations(grade)
        passed, total = sum(bool(e["passed"]) for e in expected), len(expected)
        tokens = total_tokens(grade.usage)
        unknown = ["the engine did not tell how many tokens it took"] if tokens is None else []
        run = {
            "eval_id": key[0],
            "eval_name": name,
            "configuration": grade.variant,
            "run_number": taken[key],
            "result": {
                "pass_rate": round(passed / total, 4) if total else 0.0,
                "passed": passed,
                "failed": total - passed,
                "total": total,
                "time_seconds": round(grade.duration_ms / 1000, 3),
                "tokens": tokens or 0,
            },
            "expectations": expected,
            "notes": [*grade.warnings, *unknown],
        }
        found.append((grade, run))
    return found


def _expectations(grade: Grade) -> list[dict[str, Any]]:
    """Every check that decided: ``{text, passed, evidence}``."""
    checks = [
        (f"turn {turn.turn_number}: " if len(grade.turns) > 1 else "", check)
        for turn in grade.turns
        for check in turn.deciding_checks()
    ]
    return [
        {
            "text": where + check.name,
            "passed": check.passed,
            "evidence": "\n".join(filter(None, (check.error or check.found, check.excerpt))),
        }
        for where, check in [*checks, *(("", check) for check in grade.assertions)]
    ]


def benchmark(
    runs: Sequence[Run],
    *,
    timestamp: str,
    skill_name: str = "",
    skill_path: str = "",
    model: str = "",
) -> dict[str, Any]:
    """What `aggregate_benchmark.py` would write, and the names of the evals."""
    graded = [run for grade, run in runs if grade.status in GRADED]
    order = CONFIGURATIONS.index
    graded.sort(key=lambda r: (order(r["configuration"]), r["eval_id"], r["run_number"]))
    engines = list(dict.fromkeys(grade.engine for grade, _ in runs))
    notes = [
        f"Eval {run['eval_id']} ({grade.case_id}), {grade.variant}, run {run['run_number']} was "
        f"not graded: {grade.status}: {grade.reason}"
        for grade, run in runs
        if grade.status not in GRADED
    ]
    return {
        "metadata": {
            "skill_name": skill_name or ", ".join(dict.fromkeys(g.suite for g, _ in runs)),
            "skill_path": skill_path,
            "executor_model": model or ", ".join(engines),
            "analyzer_model": "",
            "timestamp": timestamp[:19] + "Z",
            "evals_run": sorted({run["eval_id"] for run in graded}),
            "runs_per_configuration": max((run["run_number"] for run in graded), default=0),
        },
        "runs": graded,
        "run_summary": _summary(graded),
        "notes": notes,
    }


def _summary(runs: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Mean, sample standard deviation and range of each configuration, and how the two differ
    (with one alone `delta` is empty, which the viewer shows as a dash).
    """
    found: dict[str, Any] = {}
    for name in CONFIGURATIONS:
        results = [run["result"] for run in runs if run["configuration"] == name]
        for metric in _METRICS if results else ():
            values = [float(result[metric]) for result in results]
            # Not by `statistics`, which is more exact: the fourth digit is to be the aggregator's.
            mean = sum(values) / len(values)
            spare = sum((value - mean) ** 2 for value in values) / max(len(values) - 1, 1)
            numbers = (mean, math.sqrt(spare), min(values), max(values))
            names = ("mean", "stddev", "min", "max")
            rounded = (round(number, 4) for number in numbers)
            found.setdefault(name, {})[metric] = dict(zip(names, rounded, strict=True))
    sides = list(found.values())
    found["delta"] = {}
    if len(sides) == 2:
        for metric, form in _METRICS.items():
            change = sides[0][metric]["mean"] - sides[1][metric]["mean"]
            found["delta"][metric] = f"{change:{form}}"
    return found


# The workspace.


def export_run(run: RunDirectory, out: Path) -> list[tuple[Path, list[Grade]]]:
    """Write the finished trials of `run` below `out`, which must be new or empty; each folder, and
    what was of it. Only those with a verdict are runs there; others are named in the notes.

    Raises UsageError if it is not or cannot be written, and if no trial of the run has a grade.
    """
    groups: dict[tuple[str, str], list[tuple[str, Grade]]] = {}
    for found in run.finished():
        grade = found.grade()
        # Of a grade from elsewhere the variant may be anything, also a way out of the folder.
        if grade is not None and grade.variant in CONFIGURATIONS:
            groups.setdefault((grade.suite, grade.engine), []).append((found.job_id, grade))
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
            folder = out / name if len(groups) > 1 else out
            _export(run, folder, members)
            exported.append((folder, [grade for _, grade in members]))
    except OSError as error:
        raise UsageError(
            f"cannot write {error.filename}: {error.strerror}", hint="choose another --out"
        ) from error
    return exported


def _export(run: RunDirectory, out: Path, members: Sequence[tuple[str, Grade]]) -> None:
    runs = runs_of([grade for _, grade in members])
    first: Record | None = None
    for (job, _), (grade, entry) in zip(members, runs, strict=True):
        record = run.read_record(job)
        first = first or record
        home = out / f"eval-{entry['eval_id']:03}"  # so that their names are in their order
        where = home / entry["configuration"] / f"run-{entry['run_number']:03}"
        if grade.status in GRADED:
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
