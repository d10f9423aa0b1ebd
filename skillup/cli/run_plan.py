"""From a request to the plan of a run, and what of it must never be shown."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from skillup.cli.engines import profiles_for, require_scripts
from skillup.cli.judges import with_judges
from skillup.cli.options import parse_vars
from skillup.cli.request import RunRequest
from skillup.cli.run_limits import check_deciding
from skillup.errors import Problem, UsageError
from skillup.load.model import Loaded
from skillup.load.sampling import Sampling, sampled
from skillup.load.suites import load_paths
from skillup.plan import Plan, Selection, make_plan
from skillup.reports.problems import problem_line
from skillup.reports.text import listed_ids


def plan_of(request: RunRequest) -> tuple[Plan, int]:
    """The plan that `request` asks for, and how many trials at once the suites in it allow.

    Raises UsageError and InvalidFilesError; warnings go to stderr.
    """
    check_deciding(request)
    base = Path(request.directory or ".")
    variables = parse_vars(list(request.variables))
    loaded = load_paths([base / path for path in request.paths], variables=variables)
    if loaded.errors:
        _warn(loaded.warnings)
    loaded.or_raise()
    suites = sampled(loaded.suites, Sampling(request.item, request.sample_size, request.seed))
    suites = with_judges(suites, request.judge_model, request.judge_model_fallback)
    profiles = profiles_for(suites, request.engines, request.model, base)
    plan = make_plan(
        suites,
        profiles,
        Selection(
            case_globs=request.cases,
            tags=request.tags,
            trials=request.trials,
            trials_from_turn=request.trials_from_turn,
            variants=("with_skill", "without_skill") if request.baseline else ("with_skill",),
            variables=variables,
        ),
    )
    if request.jobs:
        wanted = set(request.jobs)
        plan = replace(plan, jobs=tuple(job for job in plan.jobs if job.id in wanted))
    if not plan.jobs:
        known = ", ".join(plan.left_out[:10]) or "none"
        raise UsageError("no case matches the selection", hint=f"the cases are: {known}")
    _warn(_of_selected(loaded, plan))
    require_scripts(plan)
    of_plan = {job.suite.path: job.suite.suite.cases.parallelism for job in plan.jobs}
    # A suite's number is what it can stand: with several, none is exceeded.
    return plan, min(filter(None, of_plan.values()), default=os.cpu_count() or 2)


def _of_selected(loaded: Loaded, plan: Plan) -> list[Problem]:
    """The warnings without those of files that hold none but cases which are not run."""
    files = {case.path for suite in loaded.suites for case in suite.cases}
    left_out = files - {job.loaded.path for job in plan.jobs}
    return [warning for warning in loaded.warnings if warning.file not in left_out]


def _warn(problems: Iterable[Problem]) -> None:
    for problem in problems:
        sys.stderr.write(problem_line(problem) + "\n")


def check_same_trials(plan: Plan, run_info: Mapping[str, Any]) -> None:
    """Raises UsageError if `plan` has other trials than the run that is gone on with.

    The result would silently lack what was held of a case that has gone since.
    """
    before, now = run_info.get("jobs"), {job.id: None for job in plan.jobs}
    if not isinstance(before, list):
        return
    told = []
    for what, jobs in (
        ("there no longer", [job for job in before if job not in now]),
        ("new", [job for job in now if job not in set(before)]),
    ):
        if jobs:
            count = f"{len(jobs)} trial{'s' if len(jobs) != 1 else ''}"
            told.append(f"{what}: {count} ({listed_ids(jobs, 3)})")
    if told:
        raise UsageError(
            f"the cases have changed since the run began; {'; '.join(told)}",
            hint="put them back as they were, or start a new run; "
            "`skillup judge RUN` shows what was held",
        )
