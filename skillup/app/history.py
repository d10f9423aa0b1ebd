"""The end of a run: what `run.json` keeps for comparisons, and the run's place in the index."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any

from skillup.app.resume import milliseconds_of_starts
from skillup.errors import SkillupError, UsageError
from skillup.reports.result import Ending, build_result
from skillup.reports.terminal.listing import shown_path
from skillup.schema.grade import RunResult
from skillup.store import RunDirectory, trials
from skillup.store.run_directory import RESULT_FILE

if TYPE_CHECKING:
    from skillup.load.model import LoadedSuite
    from skillup.plan import Plan


def recorded_suites(plan: Plan) -> dict[str, dict[str, Any]]:
    """By name, the suites of `plan`: file, gates, skills, titles, tags, and what jobs call cases.

    Gates are kept as they were when the run was held, so that a comparison in a month's time asks
    what the suite asked for then.
    """
    found: dict[str, dict[str, Any]] = {}
    for job in plan.jobs:
        suite = job.suite
        about = found.get(suite.name)
        if about is None:
            about = found[suite.name] = {
                "path": str(suite.path),
                "gates": suite.suite.gates.model_dump(mode="json", exclude_none=True),
                "cases": {},
                "titles": {},
                "tags": {},
                **_installed_skills(suite),
            }
        about["cases"][job.id.rsplit("/", maxsplit=3)[0]] = job.loaded.case.id
        if job.loaded.case.title:
            about["titles"][job.loaded.case.id] = job.loaded.case.title
        if job.loaded.case.tags:
            about["tags"][job.loaded.case.id] = list(job.loaded.case.tags)
    return found


def _installed_skills(suite: LoadedSuite) -> dict[str, list[str]]:
    """By name, those under test and those beside them; of skills that are none, nothing."""
    from skillup.trial.setup import skills_for

    found = skills_for(suite, "with_skill")
    names: dict[str, list[str]] = {"skills": [], "distractors": []}
    for skill in found if isinstance(found, list) else ():
        names["distractors" if skill.role == "distractor" else "skills"].append(skill.name)
    return names


def index_finished_run(path: Path, start: Path, given: str | None) -> None:
    """Index the run in the directory `path`, as its files say.

    `start`: where the workspace is looked for; `given`: `--index`. Trouble is a line on stderr and
    nothing else: the run is over, and its result is on the disk.
    """
    try:
        from skillup.history.index import index_url
        from skillup.load.discover import workspace_root

        url = index_url(given, os.environ, workspace_root(start), write=True)
        if not url:
            return
        from skillup.history.index import add_run
        from skillup.history.runs import read_run

        add_run(url, read_run(path))
    except SkillupError as error:
        _say(f"not indexed: {error.message}")
        if error.hint:
            _say(f"  hint: {error.hint}")
    except KeyboardInterrupt:
        _say("not indexed: interrupted")
    except Exception as error:  # noqa: BLE001 - nothing here may change what the run came to
        _say(f"not indexed: {type(error).__name__}: {error}")


def _say(text: str) -> None:
    from skillup.reports.text import plain

    sys.stderr.write(plain(text) + "\n")


# The result of a run that goes on, or was killed, and so has none: of the trials with a grade.


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
