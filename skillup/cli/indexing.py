"""The end of a run: what `run.json` keeps for comparisons, and the run's place in the index."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from skillup.errors import SkillupError

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
    from skillup.trial.skills import skills_for

    found = skills_for(suite, "with_skill")
    names: dict[str, list[str]] = {"skills": [], "neighbours": []}
    for skill in found if isinstance(found, list) else ():
        names["neighbours" if skill.role == "neighbour" else "skills"].append(skill.name)
    return names


def index_finished_run(path: Path, start: Path, given: str | None) -> None:
    """Index the run in the directory `path`, as its files say.

    `start`: where the workspace is looked for; `given`: `--index`. Trouble is a line on stderr and
    nothing else: the run is over, and its result is on the disk.
    """
    try:
        from skillup.load.discover import workspace_root
        from skillup.trends.index.database import index_url

        url = index_url(given, os.environ, workspace_root(start), write=True)
        if not url:
            return
        from skillup.trends.index.queries import add_run
        from skillup.trends.reading import read_run

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
