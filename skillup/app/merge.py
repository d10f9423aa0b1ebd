"""One run of several that ran parts of the same plan: `skillup run --shard` and `skillup merge`."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from skillup.analysis import with_analysis
from skillup.app.resume import milliseconds_of_starts
from skillup.errors import RunDirectoryError, UsageError
from skillup.plan import Job, Plan
from skillup.reports.result import Ending, build_result
from skillup.schema.grade import Grade, RunResult, Stop
from skillup.store import RunDirectory, new_run_id
from skillup.store.files import disk_errors, write_atomic
from skillup.store.journal import no_mask, to_json
from skillup.store.run_directory import JOURNAL_FILE, RESULT_FILE
from skillup.store.trials import CHECKPOINT_FILE, GRADE_FILE, RECORD_FILE

_SAME = ("schema_version", "skillup_version", "case_digests", "profiles")
_OWN_EVENTS = frozenset({"run_created", "run_reopened", "result_written"})
"""Of each run; of these the merged one has its own."""


def shard_of(plan: Plan, shard: str, *, by_case: bool) -> Plan:
    """The part ``INDEX/COUNT`` of `plan`: the same one wherever the plan is made.

    Trials that share turns, or of which one depends on the other, are in one shard, and so are all
    trials of a case if `by_case`. Raises UsageError for what is no shard.
    """
    index, _, count = shard.partition("/")
    if not (index.isdecimal() and count.isdecimal() and 1 <= int(index) <= int(count)):
        raise UsageError(f"--shard {shard}: no part of the run", hint="for example 1/8, up to 8/8")
    sizes = [0] * int(count)
    taken: set[str] = set()
    for group in _groups(plan.jobs, by_case=by_case):
        smallest = sizes.index(min(sizes))
        sizes[smallest] += len(group)
        if smallest == int(index) - 1:
            taken.update(group)
    jobs = tuple(job for job in plan.jobs if job.id in taken)
    return replace(plan, jobs=jobs, whole=plan.jobs)


def _groups(jobs: Sequence[Job], *, by_case: bool) -> list[list[str]]:
    """Ids of jobs that belong together, in the order of the plan."""
    leader: dict[str, str] = {}

    def find(name: str) -> str:
        while leader.setdefault(name, name) != name:
            name = leader[name]
        return name

    for job in jobs:
        case = f"case {job.suite.path} {job.loaded.family}" if by_case else job.id
        for other in (*job.depends_on, f"family {job.family}" if job.family else job.id, case):
            leader[find(other)] = find(job.id)
    groups: dict[str, list[str]] = {}
    for job in jobs:
        groups.setdefault(find(job.id), []).append(job.id)
    return list(groups.values())


def merge_runs(paths: Sequence[Path], out: Path) -> RunResult:
    """Make the run `out` of those in `paths`, which stay as they are; its result.

    Raises UsageError if they are not of one plan, or differ in what came of a trial, and
    RunDirectoryError if one of them still goes on, or `out` is not empty.
    """
    shards = [RunDirectory.open(path) for path in paths]
    infos = [shard.run_info() for shard in shards]
    for shard, info in zip(shards, infos, strict=True):
        _check_same_plan(shards[0].path, infos[0], shard.path, info)
    holders: dict[str, RunDirectory] = {}
    for shard in shards:
        for job in sorted(shard.finished_jobs()):
            _check_same_trial(job, holders.setdefault(job, shard), shard)
    with disk_errors("write", out):
        return _merged(shards, infos, holders, out)


def _merged(
    shards: Sequence[RunDirectory],
    infos: Sequence[Mapping[str, Any]],
    holders: Mapping[str, RunDirectory],
    out: Path,
) -> RunResult:
    jobs = planned_jobs(infos[0])
    info = {
        **infos[0],
        "run_id": new_run_id(),
        "started_at": min(str(info["started_at"]) for info in infos),
        "request": {**infos[0]["request"], "shard": None},
        "jobs": jobs,
        "references": {case: r for i in infos for case, r in (i.get("references") or {}).items()},
        "merged": [info["run_id"] for info in infos],
    }
    info.pop("planned", None)
    events = [e for shard in shards for e in shard.events() if e.get("event") not in _OWN_EVENTS]
    events.sort(key=lambda event: str(event.get("time")))
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
        for job in jobs:
            begun = [s for s in shards if s.trial_directory(job).is_dir()]
            source = holders.get(job) or next(iter(begun), None)
            if source is not None:
                target = merged.trial_directory(job)
                # Where an unfinished one was left is on the machine that ran it.
                left_out = shutil.ignore_patterns(CHECKPOINT_FILE)
                shutil.copytree(source.trial_directory(job), target, ignore=left_out)
        result = with_analysis(result_of_parts(merged, shards), info)
        merged.write_result(result)
    return result


def planned_jobs(info: Mapping[str, Any]) -> list[str]:
    """All jobs of the plan of which a run, with `info` in its `run.json`, may be a part."""
    return list(info.get("planned") or info["jobs"])


def result_of_parts(merged: RunDirectory, parts: Sequence[RunDirectory]) -> RunResult:
    """The result of the trials in `merged`; why others were not run is told by its `parts`."""
    info = merged.run_info()
    results = [part.read_result() for part in parts if (part.path / RESULT_FILE).exists()]
    grades: dict[str, Grade] = {}
    for job in info["jobs"]:
        grade = merged.read_grade(job) if merged.finished_record(job) is not None else None
        if grade is not None:
            grades[job] = grade
    stop: Stop | None = next((r.stopped for r in results if r.stopped is not None), None)
    ending = Ending(
        stop,
        frozenset(job for result in results for job in result.not_needed if job not in grades),
        tuple(dict.fromkeys(text for result in results for text in result.warnings)),
    )
    took = milliseconds_of_starts(merged.events())
    return build_result(info["run_id"], info["started_at"], grades, info["jobs"], took, ending)


def _check_same_plan(
    first: Path, info: Mapping[str, Any], other: Path, about: Mapping[str, Any]
) -> None:
    differ = [name for name in _SAME if info.get(name) != about.get(name)]
    if planned_jobs(info) != planned_jobs(about):
        differ.append("planned")
    if _gates(info) != _gates(about):
        differ.append("gates")
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


def _gates(info: Mapping[str, Any]) -> dict[str, Any]:
    return {name: about.get("gates") for name, about in (info.get("suites") or {}).items()}


def _check_same_trial(job: str, one: RunDirectory, other: RunDirectory) -> None:
    for name in (RECORD_FILE, GRADE_FILE) if one is not other else ():
        files = [run.trial_directory(job) / name for run in (one, other)]
        if len({file.read_bytes() if file.exists() else b"" for file in files}) > 1:
            raise UsageError(
                f"{job} was run in {one.path} and in {other.path}, and differs",
                hint="name each shard once: a shard that was run twice is two runs",
            )
