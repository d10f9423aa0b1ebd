"""What the options of pytest select: the suites, the jobs of each, and what is wrong."""

from __future__ import annotations

import io
import os
from collections.abc import Sequence
from contextlib import redirect_stderr
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

import pytest

from skillup.app.planning import plan_of
from skillup.app.request import FALLBACK_VARIABLE, RunRequest
from skillup.errors import InvalidFilesError, RunDirectoryError, SkillupError, UsageError
from skillup.load.discover import find_suites
from skillup.plan import Job, Plan
from skillup.reports.terminal.listing import problem_line
from skillup.reports.text import plain
from skillup.schema.base import MOST_TRIALS
from skillup.store.places import check_free


@dataclass
class SelectedSuites:
    """The suites of `--skillup`, and how their cases are to be run."""

    request: RunRequest
    files: tuple[Path, ...]
    """The suites' own files, resolved."""
    out: Path | None
    problem: str | None = None
    """What keeps them from being run; known once there is a plan."""
    warnings: list[str] = field(default_factory=list)

    @cached_property
    def plan(self) -> Plan:
        """Of all suites together; empty if one is not valid."""
        stderr = io.StringIO()
        try:
            with redirect_stderr(stderr):
                plan, _ = plan_of(self.request)
        except InvalidFilesError as error:
            self.problem = "\n".join(map(problem_line, error.problems))
            return Plan(())
        except SkillupError as error:
            self.problem = with_hint(error)
            return Plan(())
        self.warnings = stderr.getvalue().splitlines()
        return plan

    def narrowed(self, jobs: Sequence[Job]) -> tuple[RunRequest, Plan]:
        """The request and the plan of a run of `jobs`, with what they depend on."""
        known = {job.id: job for job in self.plan.jobs}
        needed: set[str] = set()
        waiting = [job.id for job in jobs]
        while waiting:
            name = waiting.pop()
            if name in known and name not in needed:
                needed.add(name)
                waiting.extend(known[name].depends_on)
        plan = Plan(tuple(job for name, job in known.items() if name in needed))
        return replace(self.request, jobs=tuple(job.id for job in plan.jobs)), plan


def selected_suites(config: pytest.Config) -> SelectedSuites:
    """What `config` says. Raises pytest.UsageError where a path is no suite, and the like."""
    directory = config.invocation_params.dir
    try:
        found = find_suites([directory / path for path in config.getoption("skillup")])
    except UsageError as error:
        raise pytest.UsageError(f"--skillup {with_hint(error)}") from None
    trials = config.getoption("skillup_trials")
    if trials is not None and not 1 <= trials <= MOST_TRIALS:
        raise pytest.UsageError(f"--skillup-trials {trials}: not a number from 1 to {MOST_TRIALS}")
    out = config.getoption("skillup_out")
    request = RunRequest(
        paths=tuple(str(path) for s in found for path in s.only or (s.path.resolve(),)),
        engines=tuple(config.getoption("skillup_engine") or ()),
        model=config.getoption("skillup_model"),
        trials=trials,
        baseline=config.getoption("skillup_baseline"),
        judge_model_fallback=os.environ.get(FALLBACK_VARIABLE) or None,
        directory=str(directory),
    )
    files = tuple(suite.path.resolve() for suite in found)
    return SelectedSuites(request, files, directory / out if out is not None else None)


def check_out(out: Path) -> None:
    """Raises pytest.UsageError if `--skillup-out` is no place for a run: once, and not by case."""
    try:
        check_free(out)
    except RunDirectoryError as error:
        hint = "name a new or empty directory"
        raise pytest.UsageError(f"--skillup-out: {error.message}\n  hint: {hint}") from None


def add_to_arguments(config: pytest.Config, suites: Sequence[Path]) -> None:
    """Have pytest look at the suites' files.

    `--skillup PATH` on the command line is a path to collect as any other: where it is the only
    one, `testpaths` and the working directory, which are what pytest collects for want of a path,
    are not collected. In `addopts` it adds to what is collected anyway.
    """
    typed = any(str(a).partition("=")[0] == "--skillup" for a in config.invocation_params.args)
    given = config.args_source is pytest.Config.ArgsSource.ARGS
    kept = [] if typed and not given else config.args
    named = {argument.partition("::")[0] for argument in kept}
    directory = config.invocation_params.dir
    # One that is named on the command line is there for the items of it that are named.
    files = [str(p) for p in suites if not named & {str(p), os.path.relpath(p, directory)}]
    config.args[:] = [*kept, *files]
    if not kept:
        config.args_source = pytest.Config.ArgsSource.ARGS


def with_hint(error: SkillupError) -> str:
    """The error in lines for people."""
    return plain(error.message + (f"\n  hint: {error.hint}" if error.hint else ""))
