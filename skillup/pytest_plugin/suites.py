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
from skillup.errors import InvalidFilesError, Problem, RunDirectoryError, SkillupError, UsageError
from skillup.load.discover import find_suites, suite_root
from skillup.plan import Job, Plan
from skillup.reports.terminal.listing import problem_line
from skillup.reports.text import plain
from skillup.schema.base import MOST_TRIALS
from skillup.store.run_directory import check_free


@dataclass
class SelectedSuites:
    """The suites of `--skillup`, and how their cases are to be run."""

    request: RunRequest
    """Without paths."""
    suites: dict[Path, tuple[str, ...]]
    """By the suite's file (resolved), what is selected: itself, or some of its case files."""
    out: Path | None
    directory: Path
    problems: dict[Path, str] = field(default_factory=dict)
    """By suite file, what keeps it from being run; known once there is a plan."""
    warnings: list[str] = field(default_factory=list)

    @cached_property
    def plan(self) -> Plan:
        """All suites together; those that are not valid are left out."""
        suites = dict(self.suites)
        while suites:
            paths = tuple(path for given in suites.values() for path in given)
            stderr = io.StringIO()
            try:
                with redirect_stderr(stderr):
                    plan, _ = plan_of(replace(self.request, paths=paths))
            except InvalidFilesError as error:
                for suite, problems in _by_suite(error.problems, list(suites)).items():
                    self.problems[suite] = "\n".join(map(problem_line, problems))
                    del suites[suite]
            except SkillupError as error:
                self.problems.update(dict.fromkeys(suites, with_hint(error)))
                break
            else:
                self.warnings = stderr.getvalue().splitlines()
                return plan
        return Plan(())

    @cached_property
    def jobs(self) -> dict[Path, list[Job]]:
        """By suite file, in the order of the plan."""
        found: dict[Path, list[Job]] = {}
        for job in self.plan.jobs:
            found.setdefault(job.suite.path, []).append(job)
        return found

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
        families = dict.fromkeys(job.loaded.family for job in plan.jobs)
        request = replace(
            self.request,
            paths=tuple(
                p for s, given in self.suites.items() if s not in self.problems for p in given
            ),
            # As globs that match just these names.
            cases=tuple("".join(f"[{c}]" if c in "*?[" else c for c in f) for f in families),
            jobs=tuple(job.id for job in plan.jobs),
        )
        return request, plan


def selected_suites(config: pytest.Config) -> SelectedSuites:
    """What `config` says. Raises pytest.UsageError where a path is no suite, and the like."""
    directory = config.invocation_params.dir
    try:
        found = find_suites([directory / path for path in config.getoption("skillup")])
    except UsageError as error:
        raise pytest.UsageError(f"--skillup {with_hint(error)}") from None
    out = config.getoption("skillup_out")
    request = RunRequest(
        engines=tuple(config.getoption("skillup_engine") or ()),
        model=config.getoption("skillup_model"),
        trials=_trials(config.getoption("skillup_trials")),
        baseline=config.getoption("skillup_baseline"),
        judge_model_fallback=os.environ.get(FALLBACK_VARIABLE) or None,
        directory=str(directory),
    )
    return SelectedSuites(
        request,
        {s.path.resolve(): tuple(map(str, s.only or (s.path.resolve(),))) for s in found},
        directory / out if out is not None else None,
        directory,
    )


def check_out(out: Path | None) -> None:
    """Raises pytest.UsageError if `--skillup-out` is no place for a run: once, and not by case."""
    if out is None:
        return
    try:
        there = next((path for path in (out, *out.parents) if path.exists()), None)
        if there is not None and not there.is_dir():
            raise RunDirectoryError(f"{there} is no directory")
        check_free(out)
    except RunDirectoryError as error:
        raise pytest.UsageError(
            f"--skillup-out: {error.message}\n  hint: name a new or empty directory"
        ) from None


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


def _trials(given: str | None) -> int | None:
    if given is None:
        return None
    # What has very many digits is no number to Python either.
    number = int(given) if given.isdecimal() and len(given) < 10 else 0
    if not 1 <= number <= MOST_TRIALS:
        raise pytest.UsageError(f"--skillup-trials {given}: not a number from 1 to {MOST_TRIALS}")
    return number


def _by_suite(problems: Sequence[Problem], suites: Sequence[Path]) -> dict[Path, list[Problem]]:
    """Each problem to the suite that its file is in; one of nobody's file concerns all."""
    found: dict[Path, list[Problem]] = {}
    for problem in problems:
        file = problem.file.resolve()
        near = [suite for suite in suites if suite == file or suite_root(suite) in file.parents]
        nearest = max(near, key=lambda suite: len(suite_root(suite).parts), default=None)
        for suite in suites if nearest is None else (nearest,):
            found.setdefault(suite, []).append(problem)
    return found
