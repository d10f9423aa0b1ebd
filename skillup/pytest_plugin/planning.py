"""From what is asked for to the jobs of each suite, and what is wrong with the others."""

from __future__ import annotations

import io
from collections.abc import Sequence
from contextlib import redirect_stderr
from dataclasses import dataclass, field, replace
from pathlib import Path

from skillup.app.planning import plan_of
from skillup.errors import InvalidFilesError, Problem, SkillupError
from skillup.load.discover import suite_root
from skillup.plan import Job, Plan
from skillup.pytest_plugin.asked import SessionOptions
from skillup.reports.terminal.listing import problem_line
from skillup.reports.text import plain


@dataclass(slots=True)
class Planned:
    """The plan, or why there is none."""

    plan: Plan
    troubles: dict[Path, str] = field(default_factory=dict)
    """By suite file, what keeps it from being held: lines for people."""
    warnings: list[str] = field(default_factory=list)
    _jobs: dict[Path, list[Job]] = field(default_factory=dict)

    def asked(self, asked: SessionOptions) -> SessionOptions:
        """`asked` without the suites that are in trouble, which would trouble each resumption."""
        suites = {path: given for path, given in asked.suites.items() if path not in self.troubles}
        return replace(asked, suites=suites)

    def jobs_of(self, suite: Path) -> list[Job]:
        """Those of the suite with this file (resolved), in the order of the plan."""
        if not self._jobs:
            for job in self.plan.jobs:
                self._jobs.setdefault(job.suite.path, []).append(job)
        return self._jobs.get(suite, [])


def planned(asked: SessionOptions) -> Planned:
    """Plan all suites together; those that are not valid are left out, and told of."""
    found = Planned(Plan(()))
    suites = dict(asked.suites)
    while suites:
        paths = tuple(path for given in suites.values() for path in given)
        told = io.StringIO()
        try:
            with redirect_stderr(told):
                found.plan, _ = plan_of(replace(asked.request, paths=paths))
        except InvalidFilesError as error:
            for suite, problems in _by_suite(error.problems, list(suites)).items():
                lines = [problem_line(problem) for problem in problems]
                found.troubles[suite] = "\n".join(lines)
                del suites[suite]
        except SkillupError as error:
            hint = f"\n  hint: {error.hint}" if error.hint else ""
            found.troubles.update(dict.fromkeys(suites, plain(error.message + hint)))
            break
        else:
            found.warnings = told.getvalue().splitlines()
            break
    return found


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
