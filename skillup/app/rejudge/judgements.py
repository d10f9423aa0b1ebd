"""Judgements of a run beside its grades: kept, compared with, and made the run's own grades."""

from __future__ import annotations

import re
from pathlib import Path

from skillup.analysis import with_analysis
from skillup.app.rejudge.sources import RecordSource
from skillup.app.run_session import index_finished_run
from skillup.app.runs import check_judgement, run_path
from skillup.errors import UsageError
from skillup.judges.rejudge import RECORDED
from skillup.reports.result import build_result
from skillup.schema.line import line_of
from skillup.store import RunDirectory
from skillup.store.places import RESULT_FILE
from skillup.store.remote import is_url
from skillup.store.stored_run import ORIGINAL, StoredGrades

_NAME = re.compile(r"(?!\.)[A-Za-z0-9._-]{1,80}")


def check_new_name(source: RecordSource, name: str) -> None:
    """Raises UsageError unless the judgement `name` could be kept."""
    if not _NAME.fullmatch(name) or name in (ORIGINAL, RECORDED):
        hint = "letters, digits, dots, dashes and underscores; not `original`, not `recorded`"
        raise UsageError(f"--write {name}: that is no name for a judgement", hint=hint)
    if source.run is None:
        raise UsageError("--write keeps a judgement of a run", hint="keep the output of --json")
    if name in source.run.judgements():
        raise UsageError(f"--write {name}: it is there already", hint="choose another name")


def promote(target: str, name: str) -> int:
    """Make the judgement the run's grades, in the run, its result and the index; how many.

    Raises UsageError where it does not fit the run as a whole, RunDirectoryError.
    """
    if is_url(target):
        what = f"--promote {name}: {target} is a URL, and what is changed here is a copy of it"
        raise UsageError(what, hint="promote it where the run is written, and upload that")
    with RunDirectory.open(run_path(target), writable=True) as run:
        check_judgement(run, name)
        old = run.read_result(cases=False) if (run.path / RESULT_FILE).exists() else None
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
        saved = old.not_needed
        rest = saved, old.summary.duration_ms, None, saved, old.warnings
        result = build_result(old.run_id, old.started_at, StoredGrades(run, lines), *rest)
        result = with_analysis(result, run.run_info())
        run.write_result(result)
        index_finished_run(run.path, result, Path(), None)
    return len(lines)
