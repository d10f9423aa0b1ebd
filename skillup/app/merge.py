"""One run of several that ran parts of the same plan: `skillup merge`."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from skillup.analysis import with_analysis
from skillup.app.interruption import milliseconds_of_starts
from skillup.errors import RunDirectoryError, UsageError
from skillup.reports.result import build_result
from skillup.schema.grade import RunResult
from skillup.store import RunDirectory, new_run_id
from skillup.store.files import disk_errors, no_mask, to_json, write_atomic
from skillup.store.places import JOURNAL_FILE, RESULT_FILE
from skillup.store.trials import CHECKPOINT_FILE, GRADE_FILE, RECORD_FILE

_SAME = ("schema_version", "skillup_version", "case_digests", "profiles")
_OWN_EVENTS = frozenset({"run_created", "run_reopened", "result_written"})
"""Of each run; of these the merged one has its own."""


def merge_runs(paths: Sequence[Path], out: Path) -> RunResult:
    """Make the run `out` of those in `paths`, which stay as they are; its result.

    Raises UsageError if they are not of one plan, or differ in what came of a trial, and
    RunDirectoryError if one of them still goes on, or `out` is not empty.
    """
    shards = [RunDirectory.open(path) for path in paths]
    infos = [shard.run_info() for shard in shards]
    for shard, info in zip(shards, infos, strict=True):
        _check_same_plan(shards[0].path, infos[0], shard.path, info)
    finished: dict[str, RunDirectory] = {}
    for shard in shards:
        for job in sorted(shard.finished_jobs()):
            first = finished.setdefault(job, shard)
            for name in (RECORD_FILE, GRADE_FILE) if first is not shard else ():
                files = [run.trial_directory(job) / name for run in (first, shard)]
                if len({file.read_bytes() if file.exists() else b"" for file in files}) > 1:
                    raise UsageError(
                        f"{job} was run in {first.path} and in {shard.path}, and differs",
                        hint="name each shard once: a shard that was run twice is two runs",
                    )
    info = {
        **infos[0],
        "run_id": new_run_id(),
        "started_at": min(str(info["started_at"]) for info in infos),
        "request": {**infos[0]["request"], "shard": None},
        "jobs": _planned_jobs(infos[0]),
        "references": {case: r for i in infos for case, r in (i.get("references") or {}).items()},
        "merged": [info["run_id"] for info in infos],
    }
    info.pop("planned", None)
    events = [e for shard in shards for e in shard.events() if e.get("event") not in _OWN_EVENTS]
    events.sort(key=lambda event: str(event.get("time")))
    with disk_errors("write", out):
        if out.exists() and any(out.iterdir()):
            raise RunDirectoryError(f"{out} is not empty", hint="name another directory with --out")
        out.mkdir(parents=True, exist_ok=True)
        # It knows the digests of the records that are copied.
        write_atomic(out / JOURNAL_FILE, b"".join(to_json(e, no_mask, indent=None) for e in events))
        with RunDirectory.create(out, info, beside=(JOURNAL_FILE,)) as merged:
            for shard in shards:
                for name in ("blobs", "judge-answers"):
                    if (shard.path / name).is_dir():
                        shutil.copytree(shard.path / name, merged.path / name, dirs_exist_ok=True)
            for job in info["jobs"]:
                begun = [s for s in shards if s.trial_directory(job).is_dir()]
                source = finished.get(job) or next(iter(begun), None)
                if source is not None:
                    target = merged.trial_directory(job)
                    # Where an unfinished one was left is on the machine that ran it.
                    left_out = shutil.ignore_patterns(CHECKPOINT_FILE)
                    shutil.copytree(source.trial_directory(job), target, ignore=left_out)
            result = with_analysis(_result(merged, info, shards), info)
            merged.write_result(result)
    return result


def _planned_jobs(info: Mapping[str, Any]) -> list[str]:
    """All jobs of the plan of which a run, with `info` in its `run.json`, may be a part."""
    return list(info.get("planned") or info["jobs"])


def _result(
    merged: RunDirectory, info: Mapping[str, Any], parts: Sequence[RunDirectory]
) -> RunResult:
    """The result of the trials in `merged`; why others were not run its `parts` know."""
    results = [part.read_result() for part in parts if (part.path / RESULT_FILE).exists()]
    finished = [job for job in info["jobs"] if merged.finished_record(job) is not None]
    found = {job: merged.read_grade(job) for job in finished}
    grades = {job: grade for job, grade in found.items() if grade is not None}
    stop = next((r.stopped for r in results if r.stopped is not None), None)
    saved = {job for result in results for job in result.not_needed if job not in grades}
    warnings = dict.fromkeys(text for result in results for text in result.warnings)
    took = milliseconds_of_starts(merged.events())
    about = info["run_id"], info["started_at"]
    return build_result(*about, grades, info["jobs"], took, stop, saved, warnings)


def _check_same_plan(
    first: Path, info: Mapping[str, Any], other: Path, about: Mapping[str, Any]
) -> None:
    def gates(info: Mapping[str, Any]) -> dict[str, Any]:
        return {name: about.get("gates") for name, about in (info.get("suites") or {}).items()}

    differ = [name for name in _SAME if info.get(name) != about.get(name)]
    differ += ["planned"] if _planned_jobs(info) != _planned_jobs(about) else []
    differ += ["gates"] if gates(info) != gates(about) else []
    known = info.get("references") or {}
    for case, references in (about.get("references") or {}).items():
        if known.get(case, references) != references:
            differ.append(f"references of {case}")
    if differ:
        raise UsageError(
            f"{other} is no part of the run of which {first} is one: they differ in "
            f"{', '.join(differ)} of run.json",
            hint="merge what `skillup run --shard` made of the same files with the same options",
        )
