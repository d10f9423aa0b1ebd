"""Judgements of a run beside its grades: kept, compared with, and made the run's own grades."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from skillup.analysis import with_analysis
from skillup.app.rejudge.sources import RecordSource
from skillup.app.run_session import index_finished_run
from skillup.app.runs import run_path
from skillup.errors import RunDirectoryError, UsageError
from skillup.reports.result import build_result
from skillup.schema.grade import Grade
from skillup.schema.line import line_of
from skillup.store import RunDirectory
from skillup.store.places import is_being_written
from skillup.store.remote import is_url
from skillup.store.stored_run import ORIGINAL, StoredGrades, StoredRun

_NAME = re.compile(r"[A-Za-z0-9._-]{1,80}")


def check_new_name(source: RecordSource, name: str) -> None:
    """Raises UsageError unless the judgement `name` could be kept."""
    if not _NAME.fullmatch(name) or name == ORIGINAL:
        hint = "letters, digits, dots, dashes and underscores; `original` is what was replaced"
        raise UsageError(f"--write {name}: that is no name for a judgement", hint=hint)
    if source.run is None:
        raise UsageError("--write keeps a judgement of a run", hint="keep the output of --json")
    if name in source.run.judgements():
        raise UsageError(f"--write {name}: it is there already", hint="choose another name")
    if is_being_written(source.run.path):
        raise UsageError("the run is being written", hint="wait until it has ended")


def check_known(run: StoredRun | None, option: str, name: str) -> None:
    """Raises UsageError, with the judgements that are there, unless `name` is one of them."""
    known = run.judgements() if run is not None else []
    if name not in known:
        listed = f"there are: {', '.join(known)}" if known else "skillup judge RUN --write NAME"
        raise UsageError(f"{option} {name}: there is no such judgement here", hint=listed)


def keep(source: RecordSource, name: str, grades: Mapping[str, Grade], by: dict[str, Any]) -> None:
    """Stores all of it, or nothing. `by`: who judged, by what. Raises RunDirectoryError."""
    with RunDirectory.open(source.path, writable=True) as run:
        run.write_judgement(name, grades, by)


def promote(target: str, name: str) -> int:
    """Make the judgement the run's grades, in the run, its result and the index; how many.

    Raises UsageError where it does not fit the run as a whole, RunDirectoryError.
    """
    if is_url(target):
        what = f"--promote {name}: {target} is a URL, and what is changed here is a copy of it"
        raise UsageError(what, hint="promote it where the run is written, and upload that")
    with RunDirectory.open(run_path(target), writable=True) as run:
        check_known(run, "--promote", name)
        with suppress(RunDirectoryError):
            old = run.read_result(cases=False)
            if old.finished:
                return _promote(run, name)
        hint = "finish it with skillup run --resume"
        raise UsageError(f"--promote {name}: the run is not finished", hint=hint)


def _promote(run: RunDirectory, name: str) -> int:
    info, old, lines = run.run_info(), run.read_result(cases=False), {}
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
    grades = StoredGrades(run, list(lines), list(lines.values()))
    took, saved = old.summary.duration_ms, old.not_needed
    about = (old.run_id, old.started_at)
    result = build_result(*about, grades, old.not_needed, took, None, saved, old.warnings)
    result = with_analysis(result, info)
    run.write_result(result)
    index_finished_run(run.path, result, Path(), None)
    return len(lines)
