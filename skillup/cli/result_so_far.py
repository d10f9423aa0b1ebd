"""The result of a run that goes on, or was killed, and so has none: of the trials with a grade."""

from __future__ import annotations

from shlex import quote
from typing import Any

from skillup.cli.time_taken import milliseconds_of_starts
from skillup.errors import UsageError
from skillup.reports.problems import shown_path
from skillup.reports.result import Ending, build_result
from skillup.schema.grade import RunResult
from skillup.store import RunDirectory, trials
from skillup.store.run_directory import RESULT_FILE


def has_result(directory: RunDirectory) -> bool:
    """Whether the run has a result.json."""
    return (directory.path / RESULT_FILE).exists()


def result_so_far(directory: RunDirectory) -> RunResult:
    """What result.json would be if the run ended now; its warning says what is missing.

    Raises UsageError if no trial of the run has a grade.
    """
    info: dict[str, Any] = directory.run_info()
    ended = trials.directories_with_records(directory.path / "trials")
    found = {job: trials.load_grade(place / trials.GRADE_FILE) for job, place in ended}
    grades = {job: grade for job, grade in found.items() if grade is not None}
    where = shown_path(directory.path)
    resume = f"`skillup run --resume {quote(where)}`"
    if not grades:
        raise UsageError(
            f"{where} has no result.json, and none of its trials has a grade",
            hint=f"hold them with {resume}; `skillup judge {quote(where)}` shows what is recorded",
        )
    planned = list(dict.fromkeys([*(info.get("jobs") or ()), *grades]))
    missing = f"{len(planned) - len(grades)} of {len(planned)} trials have no grade"
    killed = (
        f"{where} has no result.json: it goes on, or was killed; {missing} ({resume} holds them)"
    )
    return build_result(
        str(info.get("run_id") or directory.path.name),
        str(info.get("started_at") or ""),
        grades,
        planned,
        milliseconds_of_starts(directory.events()),
        Ending(warnings=(killed,)),
    )
