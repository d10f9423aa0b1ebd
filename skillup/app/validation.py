"""What is wrong with suites, cases and profiles, or would keep a run from judging them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from skillup.app.engines import own_profile, root_with_engines
from skillup.app.judges import simulators_of
from skillup.errors import InvalidFilesError, Problem
from skillup.judges.models.client import ModelOptions, Models
from skillup.judges.router import first_read
from skillup.load.discover import workspace_root
from skillup.load.model import Loaded, LoadedCase, LoadedSuite
from skillup.load.profiles import check_profile, is_profile, profile_files
from skillup.load.suites import load_paths
from skillup.redaction.secrets import Secrets
from skillup.schema.suite import playing_model
from skillup.simulator.factory import NOBODY

_FIX = "a run of the cases that need it would be an error"


@dataclass(frozen=True, slots=True)
class Validation:
    """What was looked at, and what is wrong with it."""

    suites: int
    cases: int
    profiles: int
    problems: tuple[Problem, ...]


def validate_paths(paths: Sequence[Path], variables: dict[str, str]) -> Validation:
    """Look at suites, cases and profiles in `paths`, and at the profiles of their workspaces."""
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
        problems += [*_engine_problems(suite), *_judge_problems(suite), *_user_problems(suite)]
    for file in profiles:
        problems += check_profile(file, os.environ, lenient=True)[1]
    cases = sum(len(suite.cases) for suite in loaded.suites)
    return Validation(len(loaded.suites), cases, len(profiles), tuple(problems))


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


def _judge_problems(suite: LoadedSuite) -> Iterator[Problem]:
    """Judges' models that could not be asked: warnings; written-down ones are checked as files."""
    models = Models(ModelOptions(os.environ, Secrets.from_environment(os.environ).mask))

    def written_down(loaded: LoadedCase) -> str | None:
        model = loaded.case.judge_model
        scripted = model is not None and model.model.startswith("scripted:")
        return models.problem(model, suite.root) if model is not None and scripted else None

    def asked(loaded: LoadedCase) -> str | None:
        model = loaded.case.judge_model
        if model is None or model.model.startswith("scripted:") or first_read(loaded.case) is None:
            return None
        return models.problem(model, suite.root)

    yield from _each_once(suite, ("judge", "model"), written_down, "", "error")
    yield from _each_once(suite, ("judge", "model"), asked, _FIX, "warning")


def _user_problems(suite: LoadedSuite) -> Iterator[Problem]:
    """Players of simulated users that could not be asked: warnings."""
    secrets = Secrets.from_environment(os.environ)
    models = Models(ModelOptions(os.environ, secrets.mask))
    simulators = simulators_of(models, Path.cwd(), os.environ, secrets)
    given = suite.suite.user_simulator

    def problem(loaded: LoadedCase) -> str | None:
        if given is None and playing_model(given, loaded.case) is None:
            return None  # the case's own problems say so
        why = simulators.known_problem(loaded.case, given, suite.root)
        return None if why == NOBODY else why

    yield from _each_once(suite, ("user_simulator",), problem, _FIX, "warning")


def _each_once(
    suite: LoadedSuite,
    location: tuple[str, ...],
    problem: Callable[[LoadedCase], str | None],
    fix: str,
    severity: str,
) -> Iterator[Problem]:
    line, column = suite.document.locate(location)
    for why in dict.fromkeys(map(problem, suite.cases)):
        if why is not None:
            field = ".".join(location)
            yield Problem(suite.path, line, column, field, why, fix, severity)
