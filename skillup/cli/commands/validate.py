"""`skillup validate`: are these files right?"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from skillup.app.judges import broken_judge_files
from skillup.app.request import default_paths, parse_vars
from skillup.cli.options import AsJson, Paths, Trust, Vars
from skillup.errors import ExitCode

if TYPE_CHECKING:
    from skillup.errors import Problem
    from skillup.load.model import LoadedSuite


def validate(
    paths: Paths = None,
    var: Vars = None,
    trust: Trust = False,  # noqa: ARG001 - its callback does it
    as_json: AsJson = False,
) -> int:
    """Check suites, cases and the workspace's profiles without running anything."""
    from skillup.load.model import Loaded
    from skillup.load.profiles import is_profile
    from skillup.load.suites import load_paths
    from skillup.reports.terminal.listing import print_problems, problem_as_dict
    from skillup.schema.suite import needs_simulator

    variables = parse_vars(var)
    given = default_paths(paths)
    others = [path for path in given if not is_profile(path)]
    loaded = load_paths(others, variables=variables) if others else Loaded((), ())
    profiles = _profile_files(given, others)
    problems = [
        *loaded.problems,
        *broken_judge_files(loaded.suites),
        *_engine_problems(loaded.suites),
        *_profile_problems(profiles),
    ]
    if any(needs_simulator(c.case) for suite in loaded.suites for c in suite.cases):
        from skillup.app.judges import unplayable_users

        problems.extend(unplayable_users(loaded.suites, Path.cwd(), os.environ))
    if any(c.case.judge_model is not None for suite in loaded.suites for c in suite.cases):
        from skillup.app.judges import unusable_judges

        problems.extend(unusable_judges(loaded.suites, os.environ))
    cases = sum(len(suite.cases) for suite in loaded.suites)
    if as_json:
        data = {
            "suites": len(loaded.suites),
            "cases": cases,
            "profiles": len(profiles),
            "problems": [problem_as_dict(problem) for problem in problems],
        }
        sys.stdout.write(json.dumps(data, ensure_ascii=False, indent=2) + "\n")
    else:
        counts = {"suite": len(loaded.suites), "case": cases, "profile": len(profiles)}
        print_problems(problems, counts)
    errors = any(problem.severity == "error" for problem in problems)
    return ExitCode.USAGE if errors else ExitCode.PASSED


def _engine_problems(suites: Sequence[LoadedSuite]) -> Iterator[Problem]:
    """Suites whose engine is none here; those of skill-up know engines that skillup does not."""
    from skillup.app.engines import own_profile, root_with_engines
    from skillup.errors import InvalidFilesError

    for suite in suites:
        if suite.suite.engine is None or suite.suite.engine.custom is not None:
            continue
        severity = "error" if suite.suite.schema_version is None else "warning"
        try:
            own_profile(suite, root_with_engines(Path.cwd(), suite.path))
        except InvalidFilesError as invalid:
            own = (problem for problem in invalid.problems if problem.file == suite.path)
            yield from (replace(problem, severity=severity) for problem in own)


def _profile_files(given: Sequence[Path], others: Sequence[Path]) -> list[Path]:
    """The profiles named, and those of the workspaces that the other paths are in; each once."""
    from skillup.load.discover import workspace_root
    from skillup.load.profiles import profile_files

    found: list[Path] = []
    for path in given:
        if path in others:
            found.extend(profile_files(workspace_root(path)).values())
        else:
            found.extend(profile_files(path.resolve().parent).values() if path.is_dir() else [path])
    return list(dict.fromkeys(path.resolve() for path in found))


def _profile_problems(files: Sequence[Path]) -> list[Problem]:
    from skillup.load.profiles import check_profile

    return [p for path in files for p in check_profile(path, os.environ, lenient=True)[1]]
