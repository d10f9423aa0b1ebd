"""Runs that are there: named by users, shown trial by trial, merged, promoted and removed."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from skillup.app.interruption import milliseconds_of_starts
from skillup.errors import RunDirectoryError, SkillupError, UsageError
from skillup.history.index import forget_run, indexed_runs, marks, open_index
from skillup.history.reference import NIGHTS
from skillup.load.discover import workspace_root
from skillup.plan import is_named
from skillup.reports.formats import FORMATS
from skillup.reports.html.run_files import RawFiles
from skillup.reports.terminal.conversation import ShownTrial
from skillup.reports.text import Labels, listed_ids, say, shown_path
from skillup.schema.grade import BASELINE, RunResult
from skillup.schema.line import line_of
from skillup.store import RunDirectory, StoredTrial, new_run_id, places
from skillup.store.export import ANSWERS_FOLDER
from skillup.store.files import disk_errors
from skillup.store.remote import download, is_url
from skillup.store.stored_run import StoredRun
from skillup.workspace.disk import TEMPORARY_ENDING

LAST = "last"
_SHOWN = 5
_SAME = ("schema_version", "skillup_version", "case_digests", "profiles")
_OWN = re.compile(
    rf"lock|run\.sqlite(-wal|-shm|-journal)?|\.run\.sqlite\.new|result\.json(\.earlier)?|scratch|"
    rf"files|anthropic|{ANSWERS_FOLDER}|\..*{re.escape(TEMPORARY_ENDING)}|"
    + "|".join(map(re.escape, FORMATS.values()))
)
"""What skillup writes into a run's directory."""
_OWN_EVENTS = frozenset({"run_created", "run_reopened", "result_written"})
"""Of each run; of these the merged one has its own."""


def run_path(name: str) -> Path:
    """The directory of the run `name`; says which is `last`. Raises UsageError if it is not one.

    Of a URL it is a copy, and as :func:`skillup.store.remote.download`.
    """
    if is_url(name):
        return download(name)
    if name != LAST and os.path.exists(name):  # noqa: PTH110 - a name may be too long for a path
        return Path(name).parent if Path(name).name == places.RUN_FILE else Path(name)
    folder = places.runs_folder(workspace_root(Path()))
    ids = places.runs_in(folder)
    if name == LAST and ids:
        # One that was written elsewhere may be newer, and be the one that was meant.
        say(f"{LAST}: {shown_path(folder / ids[-1])}")
        return folder / ids[-1]
    found = _called(name, ids)
    if len(found) == 1:
        return folder / found[0]
    if found:
        some = ", ".join(found[:_SHOWN])
        raise UsageError(f"{len(found)} runs begin with {name}", hint=f"say more of it: {some}")
    what = "there is no run yet" if name == LAST else f"there is no run {name}"
    raise UsageError(what, hint=f"give a run's directory or id; {newest_runs()}")


def newest_runs() -> str:
    """For hints: which runs there are."""
    folder = places.runs_folder(workspace_root(Path()))
    newest = ", ".join(reversed(places.runs_in(folder)[-_SHOWN:]))
    return f"the newest in {folder}: {newest}" if newest else f"there is no run in {folder} yet"


def means_a_run(name: str) -> bool:
    """Whether `name` is `last`, or the id of a run (or the beginning of some)."""
    folder = places.runs_folder(workspace_root(Path()))
    return name == LAST or bool(_called(name, places.runs_in(folder)))


def _called(name: str, ids: list[str]) -> list[str]:
    return [name] if name in ids else [run for run in ids if name and run.startswith(name)]


# What `skillup show` prints.


def shown_trials(
    path: Path,
    glob: str | None,
    trial: int | None,
    *,
    only_failed: bool,
    judgement: str | None = None,
) -> tuple[str, int, Iterator[ShownTrial | str]]:
    """The run's id, how many trials match, and in the order of the plan those that are shown, one
    at a time in memory; a text says why one cannot be read. Raises UsageError if none has ended.
    """
    run = RunDirectory.open(path)
    info = run.run_info()
    planned = list(info.get("jobs") or ())
    if judgement is not None:
        check_judgement(run, judgement)
    failed = {f.job_id: _has_failed(f) for f in run.finished(judgement=judgement)}
    parts = {job: job.rsplit("/", maxsplit=3) for job in [*planned, *failed]}
    parts = {job: part for job, part in parts.items() if len(part) == 4 and part[3].isdecimal()}
    taken = [
        job
        for job in failed
        if job in parts
        and (glob is None or is_named(parts[job][0], parts[job][0].partition("/")[0], (glob,)))
        and trial in (None, int(parts[job][3]))
    ]
    if not taken and (glob is not None or trial is not None):
        what = "no trial" + (f" {trial}" if trial is not None else "")
        what += f" of {glob}" if glob is not None else ""
        names = listed_ids([job for job in failed if job in parts]) or "none yet"
        raise UsageError(f"{what} has ended in this run", hint=f"there are: {names}")
    shown = [job for job in taken if not only_failed or failed[job]]
    named = Labels(part[1:] for part in parts.values())
    labels = {job: named.label(*part) for job, part in parts.items()}
    trials = _shown(run, run.finished(shown, judgement), labels) if shown else iter(())
    return str(info.get("run_id") or run.path.name), len(taken), trials


def _shown(
    run: RunDirectory, trials: Iterable[StoredTrial], labels: Mapping[str, str]
) -> Iterator[ShownTrial | str]:
    raw = RawFiles(run.trial_files, "")
    for found in trials:
        job = found.job_id
        try:
            record = found.record()
        except RunDirectoryError:
            yield f"{job}: its record is damaged; `skillup run --resume` runs it anew"
            continue
        grade = found.grade()
        if grade is None and found.grade_json is not None:
            yield f"{job}: its grade is damaged; `skillup run --resume` derives it anew"

        def streams(turn: int, follow_up: int, job: str = job) -> list[str]:
            return [link["name"] for link in raw.of_turn(job, turn, follow_up)]

        where, earlier = shown_path(run.path), [*run.attempts(job)]
        yield ShownTrial(job, labels[job], where, record, grade, streams, earlier)


def check_judgement(run: StoredRun | None, name: str) -> None:
    """Raises UsageError, with the judgements that are there, unless `name` is one of them."""
    known = run.judgements() if run is not None else []
    if name not in known:
        hint = f"there are: {', '.join(known)}" if known else "see skillup judge RUN --write NAME"
        raise UsageError(f"{name}: there is no such judgement here", hint=hint)


def _has_failed(found: StoredTrial) -> bool:
    """Or has no grade yet; without the skill a failure is what a baseline is there to show."""
    grade = found.grade()
    if grade is None or grade.status == "ERROR":
        return True
    return grade.status == "FAIL" and grade.variant != BASELINE


# One run of several that ran parts of the same plan.


def merge_runs(paths: Sequence[Path], out: Path) -> RunResult:
    """Make the run `out` of those in `paths`; its result. Raises UsageError if they do not fit."""
    with ExitStack() as opened:
        return _merged([opened.enter_context(RunDirectory.open(path)) for path in paths], out)


def _merged(shards: Sequence[RunDirectory], out: Path) -> RunResult:
    from skillup.app.run_session import write_result

    infos = [shard.run_info() for shard in shards]
    for shard, info in zip(shards, infos, strict=True):
        shard.database.check_unchanged()
        _check_same_plan(shards[0].path, infos[0], shard.path, info)
    finished: dict[str, RunDirectory] = {}
    for shard in shards:
        for job in sorted(shard.finished_jobs()):
            first = finished.setdefault(job, shard)
            both = [one for run in (first, shard) for one in run.finished([job])]
            if len({(one.record_json, one.grade_json) for one in both}) > 1:
                what = f"{job} was run in {first.path} and in {shard.path}, and differs"
                hint = "name each shard once: a shard that was run twice is two runs"
                raise UsageError(what, hint=hint)
    info = {
        **infos[0],
        "run_id": new_run_id(),
        "started_at": min(str(info["started_at"]) for info in infos),
        "request": {**infos[0]["request"], "shard": None},
        "jobs": list(_facts(infos[0])["planned"]),
        "references": {case: r for i in infos for case, r in (i.get("references") or {}).items()},
        "merged": [info["run_id"] for info in infos],
    }
    info.pop("planned", None)
    events = [e for shard in shards for e in shard.events() if e.get("event") not in _OWN_EVENTS]
    events.sort(key=lambda event: str(event.get("time")))
    with RunDirectory.create(out, info) as merged:
        for event in events:
            merged.journal(**event)
        for shard in shards:
            own = [job for job, run in finished.items() if run is shard]
            begun = {job for job in shard.begun_jobs() if job not in finished}
            renamed = merged.take_blobs(shard)
            for key, answer in shard.answers.all():
                merged.answers.keep(key, answer)
            for job in (*own, *begun):
                for state, found in merged.take_attempts(shard, job, renamed):
                    merged.write_stored("unused" if state == "begun" else state, found)
        ended_shards = [shard for shard in shards if (shard.path / places.RESULT_FILE).exists()]
        results = [shard.read_result(cases=False) for shard in ended_shards]
        ended = (job for job in info["jobs"] if merged.finished_record(job) is not None)
        graded = ((job, merged.read_grade(job)) for job in ended)
        lines = {job: line_of(grade) for job, grade in graded if grade is not None}
        without = [job for job in info["jobs"] if job not in lines]
        stop = next((r.stopped for r in results if r.stopped is not None), None)
        saved = {job for r in results for job in r.not_needed if job not in lines}
        warnings = dict.fromkeys(text for r in results for text in r.warnings)
        took = milliseconds_of_starts(merged.events())
        return write_result(merged, lines, without, took, stop, saved, warnings)


def _check_same_plan(
    first: Path, info: Mapping[str, Any], other: Path, about: Mapping[str, Any]
) -> None:
    here, there = _facts(info), _facts(about)
    differ = [name for name in here if here[name] != there[name]]
    known = info.get("references") or {}
    for case, references in (about.get("references") or {}).items():
        if known.get(case, references) != references:
            differ.append(f"references of {case}")
    if differ:
        what = f"{other} is no part of the run of which {first} is one: they differ in "
        hint = "merge what `skillup run --shard` made of the same files with the same options"
        raise UsageError(f"{what}{', '.join(differ)}", hint=hint)


def _facts(info: Mapping[str, Any]) -> dict[str, Any]:
    """What all shards of a run have in common."""
    gates = {name: about.get("gates") for name, about in (info.get("suites") or {}).items()}
    planned = info.get("planned") or info["jobs"]
    return {**{name: info.get(name) for name in _SAME}, "planned": planned, "gates": gates}


# A judgement beside the grades of a run, made its own grades.


def promote(target: str, name: str) -> int:
    """Make the judgement the run's grades, in the run, its result and the index; how many.

    Raises UsageError where it does not fit the run as a whole, RunDirectoryError.
    """
    from skillup.app.run_session import index_finished_run, write_result  # to show needs none

    if is_url(target):
        what = f"--promote {name}: {target} is a URL, and what is changed here is a copy of it"
        raise UsageError(what, hint="promote it where the run is written, and upload that")
    with RunDirectory.open(run_path(target), writable=True) as run:
        check_judgement(run, name)
        old = run.read_result(cases=False) if (run.path / places.RESULT_FILE).exists() else None
        if old is None or not old.finished:
            hint = "finish it with skillup run --resume"
            raise UsageError(f"--promote {name}: the run is not finished", hint=hint)
        lines = {}
        for found in run.finished(judgement=name):
            grade = found.grade()
            if grade is None:
                what = f"--promote {name}: it has no grade of {found.job_id}"
                raise UsageError(what, hint="write one of all trials, without -k and --tag")
            if grade.error is not None and grade.error.get("kind") == "judge":
                what = f"--promote {name}: its judge failed on {found.job_id}"
                raise UsageError(what, hint="judge again, with another --write")
            lines[found.job_id] = line_of(grade)
        run.promote(name)
        run.sync()
        saved, took = old.not_needed, old.summary.duration_ms
        result = write_result(run, lines, saved, took, None, saved, old.warnings)
        index_finished_run(run.path, result, Path(), None)
    return len(lines)


# Old runs.


def prune_runs(
    url: str, folder: Path, repository: str, keep_seconds: float, *, dry_run: bool
) -> tuple[dict[str, Path], dict[str, str], int]:
    """Remove the runs of `repository` that began longer ago: those in the index, and those in
    `folder` that are in none. By id what is gone, why others stay, and the bytes of files.

    The index keeps the newest nights of each branch. Raises IndexTroubleError: without the index
    nothing says which are pinned.
    """
    began = datetime.now(UTC) - timedelta(seconds=keep_seconds)
    before = began.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    with open_index(url, write=False) as execute:
        indexed = indexed_runs(execute)
        marked = set(marks(execute, repository).values())
    known = {os.path.realpath(row.path) for row in indexed}
    found = {row.run_id: row for row in indexed if row.repository == repository}
    nights: dict[str, list[str]] = {}
    for row in found.values():
        nights.setdefault(row.branch, []).append(row.run_id)
    compared = {run_id for ids in nights.values() for run_id in ids[-NIGHTS:]}
    old = {run_id: Path(row.path) for run_id, row in found.items() if row.started_at < before}
    for name in places.runs_in(folder):
        if os.path.realpath(folder / name) not in known:
            with suppress(RunDirectoryError), RunDirectory.open(folder / name) as run:
                info = run.run_info()
                if "" < str(info.get("started_at") or "") < before:
                    old[str(info.get("run_id"))] = folder / name
    kept = dict.fromkeys(marked & old.keys(), "it is pinned, or cases were accepted from it")
    gone: dict[str, Path] = {}
    freed = 0
    for run_id, path in old.items():
        if run_id in kept:
            continue
        try:
            done = _removed(path, run_id, dry_run=dry_run)
        except SkillupError as error:
            kept[run_id] = error.message
            continue
        if done is None and run_id in compared:
            continue
        freed += done or 0
        if run_id in found.keys() - compared and not dry_run:
            forget_run(url, run_id)
        gone[run_id] = path
    return gone, kept, freed


def _removed(path: Path, run_id: str, *, dry_run: bool) -> int | None:
    """The bytes of a run's directory, which is removed; None if this run is not there any more.

    Raises RunDirectoryError if it is being written, holds files that are not skillup's, or cannot
    be removed.
    """
    if not places.is_run(path):
        return None
    with disk_errors("remove", path):
        lock = places.take_lock(path / places.LOCK_FILE)
        try:
            with RunDirectory.open(path) as run:
                if run.run_info().get("run_id") != run_id:
                    return None
            names = sorted(entry.name for entry in path.iterdir())
            if others := [name for name in names if not _OWN.fullmatch(name)]:
                what = f"in {shown_path(path)} is what is not skillup's: {listed_ids(others)}"
                raise RunDirectoryError(what)
            size = sum(file.lstat().st_size for file in path.rglob("*") if not file.is_dir())
            if not dry_run:
                shutil.rmtree(path)
        finally:
            os.close(lock)
    return size
