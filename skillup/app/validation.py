"""What is wrong with suites, cases and profiles, or would keep a run from judging them."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from skillup.app.planning import own_profile, root_with_engines
from skillup.app.run_session import simulators_of
from skillup.errors import InvalidFilesError, Problem
from skillup.judges.models.client import Models
from skillup.judges.router import first_read
from skillup.load.discover import workspace_root
from skillup.load.model import Loaded, LoadedSuite
from skillup.load.profiles import check_profile, is_profile, profile_files
from skillup.load.suites import load_paths
from skillup.redaction.secrets import Secrets
from skillup.schema.suite import playing_model
from skillup.simulator import NOBODY

_FIX = "a run of the cases that need it would be an error"


def validate_paths(
    paths: Sequence[Path], variables: dict[str, str]
) -> tuple[Mapping[str, int], Sequence[Problem]]:
    """Look at suites, cases and profiles in `paths`, and at the profiles of their workspaces.

    How many suites, cases and profiles there were, and what is wrong with them.
    """
    others = [path for path in paths if not is_profile(path)]
    loaded = load_paths(others, variables=variables) if others else Loaded((), ())
    files: list[Path] = []
    for path in paths:
        if path in others:
            files += profile_files(workspace_root(path)).values()
        else:
            files += profile_files(path.resolve().parent).values() if path.is_dir() else [path]
    profiles = dict.fromkeys(file.resolve() for file in files)
    problems = [*loaded.problems]
    for suite in loaded.suites:
        problems += [*_engine_problems(suite), *_model_problems(suite)]
    for file in profiles:
        problems += check_profile(file, os.environ, lenient=True)[1]
    cases = sum(len(suite.cases) for suite in loaded.suites)
    return {"suite": len(loaded.suites), "case": cases, "profile": len(profiles)}, problems


def _engine_problems(suite: LoadedSuite) -> Iterator[Problem]:
    """A suite whose engine is none here; those of skill-up know engines that skillup does not."""
    if suite.suite.engine is None or suite.suite.engine.custom is not None:
        return
    severity = "error" if suite.suite.schema_version is None else "warning"
    try:
        own_profile(suite, root_with_engines(Path.cwd(), suite.path))
    except InvalidFilesError as invalid:
        own = (problem for problem in invalid.problems if problem.file == suite.path)
        yield from (replace(problem, severity=severity) for problem in own)


def _model_problems(suite: LoadedSuite) -> Iterator[Problem]:
    """Models of judges and players of users that could not be asked: warnings; judges that are
    written down are checked as files.
    """
    secrets = Secrets.from_environment(os.environ)
    models = Models(os.environ, secrets.mask)
    simulators = simulators_of(models, Path.cwd(), os.environ, secrets)
    given = suite.suite.user_simulator
    found: dict[tuple[str, str, str], None] = {}
    for case in (loaded.case for loaded in suite.cases):
        model = case.judge_model
        written = model is not None and model.model.startswith("scripted:")
        if model is not None and (written or first_read(case) is not None):
            why = models.problem(model, suite.root)
            severity = "error" if written else "warning"
            found |= {("judge.model", why, severity): None} if why is not None else {}
        # Where nobody is named, the case's own problems say so.
        if given is not None or playing_model(given, case) is not None:
            why = simulators.known_problem(case, given, suite.root)
            if why not in (None, NOBODY):
                found["user_simulator", str(why), "warning"] = None
    for field, why, severity in sorted(found, key=lambda one: (one[0], one[2])):
        fix = _FIX if severity == "warning" else ""
        yield suite.document.problem(field.split("."), why, fix, severity)
