"""What the workers of pytest-xdist have held, made into the one run of the session.

It stands here, and not with the plug-in, as whoever goes on with a session that was cut short makes
its run first.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from shlex import quote
from typing import Any

from skillup.analysis import with_analysis
from skillup.app.resume import milliseconds_of_starts
from skillup.errors import RunDirectoryError, UsageError
from skillup.executors.orphans import end_what_was_left
from skillup.reports.result import Ending, build_result
from skillup.reports.terminal.listing import shown_path
from skillup.schema.grade import Grade, RunResult
from skillup.store import RunDirectory
from skillup.store.files import disk_errors, remove_file, sync_directory, write_atomic
from skillup.store.journal import no_mask, to_json
from skillup.store.run_directory import JOURNAL_FILE, RESULT_FILE, RUN_FILE
from skillup.store.runs import runs_in
from skillup.store.scratch import remove_tree

WORKERS = "workers"
"""Within the session's run directory: those of its workers, as only one process may write one."""
_STARTS = ("run_created", "run_reopened")
_OF_ONE_WORKER = frozenset({"run_reopened", "result_written"})


def has_workers(run: Path) -> bool:
    """Whether what workers have held is still to be made one run: `run` need not be one yet."""
    return bool(runs_in(run / WORKERS))


def refuse_unjoined(run: Path) -> None:
    """Raises UsageError if `run` is not what its session has held, but in parts of it."""
    if has_workers(run):
        command = f"skillup run --resume {quote(shown_path(run))}"
        raise UsageError(
            "this session of pytest was cut short, if it is not still going on: "
            f"`{command}` makes one run of what its workers have held"
        )


def join_workers(run: Path) -> None:
    """Before `run` is gone on with: finish what its session of pytest could not. Says so on stderr.

    Raises RunDirectoryError, also if the session is still going on.
    """
    if has_workers(run):
        end_what_was_left()  # what is moved, nobody may still write
        merge_workers(run)
        sys.stderr.write(f"{shown_path(run)}: made one run of what the workers of pytest held\n")


def merge_workers(run: Path) -> RunResult:
    """Make `run` of the run directories of its workers, which are gone then; its result.

    Trials are moved, so each is in the one place or in the other whenever this is killed, and it
    can be called again. What workers wrote was masked then. Raises RunDirectoryError if a worker
    still writes; then all is as it was.
    """
    with ExitStack() as exits:
        shares = [
            exits.enter_context(RunDirectory.open(run / WORKERS / name, writable=True))
            for name in runs_in(run / WORKERS)
        ]
        merged = exits.enter_context(_opened(run, shares))
        # With a result, it was killed when only the workers' directories had to go.
        whole = (run / RESULT_FILE).exists()
        result = merged.read_result() if whole else _merged(merged, shares)
    _remove(run / WORKERS)
    return result


def _opened(run: Path, shares: Sequence[RunDirectory]) -> RunDirectory:
    """The run, for writing. It has its `run.json` when it has all that happened."""
    if (run / RUN_FILE).exists():
        return RunDirectory.open(run, writable=True)
    lines = [to_json(event, no_mask, indent=None) for event in _events(shares)]
    write_atomic(run / JOURNAL_FILE, b"".join(lines))
    return RunDirectory.create(run, _info_of(shares), beside=(WORKERS, JOURNAL_FILE))


def _merged(merged: RunDirectory, shares: Sequence[RunDirectory]) -> RunResult:
    info = merged.run_info()
    told = [result for share in shares if (result := _result_of(share)) is not None]
    parts = [part for s in shares for part in (s.blobs.directory, s.judge_answers)]
    # The records name what is in them.
    _sync((file for p in parts for file in _move_files(p, merged.path / p.name)), merged.path)
    _sync(_move_trials(info["jobs"], shares, merged), merged.path)
    result = with_analysis(_result(info, told, merged), info)
    merged.write_result(result)
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
        target = merged.trial_directory(job)
        begun = [share for share in shares if share.trial_directory(job).is_dir()]
        if begun and not target.is_dir():
            # After a worker that was killed in the midst of it, another one has held it.
            begun.sort(key=lambda share: share.finished_record(job) is None)
            yield _moved(begun[0].trial_directory(job), target)
        if merged.read_checkpoint(job) is not None:
            # Its scratch was the worker's: who goes on with the run begins it anew.
            merged.set_checkpoint_aside(job)
        for share in shares:
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
    """As they happened.

    Of the workers' starts only those stand there at which no other worker was at work: the time
    that a run took is counted by them.
    """
    by_share = [[event for event in share.events() if "event" in event] for share in shares]
    starts = _beginnings([span for events in by_share for span in _spans(events)])
    events = sorted((e for events in by_share for e in events), key=lambda e: str(e.get("time")))
    for event in events:
        if event["event"] in _OF_ONE_WORKER:
            continue
        if event["event"] in _STARTS:
            if event.get("time") not in starts:
                continue
            starts.discard(event.get("time"))
        yield event


def _spans(events: Sequence[dict[str, Any]]) -> Iterator[tuple[str, str]]:
    """From when to when a worker was at work; times are all written in one form, in UTC."""
    first = last = ""
    for event in events:
        time = event.get("time")
        if not isinstance(time, str) or event["event"] == "run_reopened":
            continue
        if event["event"] in _STARTS:
            first = time
        last = time
    if first:
        yield first, last


def _beginnings(spans: Sequence[tuple[str, str]]) -> set[str | None]:
    """Of the times at which anybody was at work, when each began."""
    found: set[str | None] = set()
    until = ""
    for first, last in sorted(spans):
        if first > until:
            found.add(first)
        until = max(until, last)
    return found


def _remove(workers: Path) -> None:
    """Not what an unfinished trial left that was held to its end by another worker."""
    for name in runs_in(workers):
        if any(path.is_file() for path in (workers / name / "trials").rglob("*")):
            remove_file(workers / name / RUN_FILE)  # it is no run any more
        else:
            remove_tree(workers / name)
    if not any(path.is_file() for path in workers.glob("*/trials/**/*")):
        remove_tree(workers)
