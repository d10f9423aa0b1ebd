"""What the workers of pytest-xdist have held, made into the one run of the session."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from skillup.cli.time_taken import milliseconds_of_starts
from skillup.errors import RunDirectoryError
from skillup.pytest_plugin.claims import WORKERS
from skillup.reports.result import Ending, build_result
from skillup.schema.grade import Grade, RunResult
from skillup.store import RunDirectory
from skillup.store.atomic import sync_directory
from skillup.store.errors_of_disk import disk_errors
from skillup.store.json_text import Mask
from skillup.store.run_directory import RESULT_FILE
from skillup.store.runs_in_order import runs_in
from skillup.store.scratch import remove_tree
from skillup.trends.analysis import with_analysis

_OF_ONE_START = frozenset({"run_reopened", "result_written"})


def merge_workers(run: Path, mask: Mask) -> RunResult:
    """Make `run` of the run directories of its workers, which are gone then; its result.

    Trials are moved, so each is in the one place or in the other whenever this is killed. Raises
    RunDirectoryError if a worker still writes, or if there is a run already; then all is as it was.
    """
    with ExitStack() as exits:
        shares = [
            exits.enter_context(RunDirectory.open(run / WORKERS / name, writable=True))
            for name in runs_in(run / WORKERS)
        ]
        told = [result for share in shares if (result := _result_of(share)) is not None]
        info = _info_of(shares)
        merged = exits.enter_context(
            RunDirectory.create(run, info, mask=mask, beside=(WORKERS,)),
        )
        parts = [part for s in shares for part in (s.blobs.directory, s.judge_answers)]
        # The records name what is in them.
        _sync((file for p in parts for file in _move_files(p, merged.path / p.name)), merged.path)
        _sync(_move_trials(info["jobs"], shares, merged), merged.path)
        for event in _events(shares):
            merged.journal(event.pop("event"), **event)
        result = with_analysis(_result(info, told, merged), info)
        merged.write_result(result)
    _remove(run / WORKERS)
    return result


def _info_of(shares: Sequence[RunDirectory]) -> dict[str, Any]:
    """They have planned the same, for xdist sees to it that they have collected the same."""
    infos = [share.run_info() for share in shares]
    return {**infos[0], "started_at": min(info["started_at"] for info in infos)}


def _result_of(share: RunDirectory) -> RunResult | None:
    """That of a worker that has come to its end."""
    try:
        return share.read_result() if (share.path / RESULT_FILE).exists() else None
    except RunDirectoryError:
        return None  # cut short


def _result(info: dict[str, Any], told: Sequence[RunResult], merged: RunDirectory) -> RunResult:
    grades: dict[str, Grade] = {}
    for job in info["jobs"]:
        grade = merged.read_grade(job) if merged.finished_record(job) is not None else None
        if grade is not None:
            grades[job] = grade
    # What is needed only by others is not missed where those were not held.
    missed = {job for result in told for job in result.not_run} if told else set(info["jobs"])
    return build_result(
        info["run_id"],
        info["started_at"],
        grades,
        [job for job in info["jobs"] if job in grades or job in missed],
        milliseconds_of_starts(merged.events()),
        Ending(
            next((result.stopped for result in told if result.stopped is not None), None),
            frozenset(),
            tuple(dict.fromkeys(text for result in told for text in result.warnings)),
        ),
    )


def _move_files(source: Path, target: Path) -> Iterator[Path]:
    """Those are called by what is in them: two of one name are the same."""
    for file in sorted(source.rglob("*")):
        if file.is_file():
            yield _moved(file, target / file.relative_to(source))


def _move_trials(
    jobs: Sequence[str], shares: Sequence[RunDirectory], merged: RunDirectory
) -> Iterator[Path]:
    for job in jobs:
        begun = [share for share in shares if share.trial_directory(job).is_dir()]
        if len(begun) > 1:
            # After a worker that was killed in the midst of it, another one has held it.
            begun.sort(key=lambda share: share.finished_record(job) is None)
        for share in begun[:1]:
            yield _moved(share.trial_directory(job), merged.trial_directory(job))
            if merged.read_checkpoint(job) is not None:
                # Its scratch was the worker's: who goes on with the run begins it anew.
                merged.set_checkpoint_aside(job)
        for share in begun:
            share.remove_scratch(job)


def _moved(source: Path, target: Path) -> Path:
    with disk_errors("move", source):
        target.parent.mkdir(parents=True, exist_ok=True)
        source.replace(target)
    return target


def _sync(moved: Iterable[Path], run: Path) -> None:
    """Once for each directory: one by one, a thousand trials would take many seconds."""
    touched = {parent for path in moved for parent in path.parents if parent.is_relative_to(run)}
    for directory in touched:
        with disk_errors("write", directory):
            sync_directory(directory)


def _events(shares: Sequence[RunDirectory]) -> Iterator[dict[str, Any]]:
    """As they happened. Each worker's start stands there: the run's time is counted by them."""
    events = [event for share in shares for event in share.events() if "event" in event]
    events.sort(key=lambda event: str(event.get("time")))
    return (event for event in events if event["event"] not in _OF_ONE_START)


def _remove(workers: Path) -> None:
    """Not what an unfinished trial left that was held to its end by another worker."""
    for name in runs_in(workers):
        if not any(path.is_file() for path in (workers / name / "trials").rglob("*")):
            remove_tree(workers / name)
    if not runs_in(workers):
        remove_tree(workers)
