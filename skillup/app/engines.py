"""Which engine runs which suite's cases."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from skillup.adapters import ADAPTERS
from skillup.errors import InvalidFilesError, Problem, UsageError
from skillup.load.discover import (
    ADDRESS,
    ALLOW,
    address_problem,
    is_trusted,
    workspace_root,
)
from skillup.load.model import LoadedSuite
from skillup.load.profiles import load_profile, profile_files
from skillup.plan import Plan
from skillup.schema.profile import Profile

DEFAULT_ENGINE = "scripted"
"""Embedded: it needs no network and no key."""


def root_with_engines(base: Path, suite: Path) -> Path:
    """The workspace whose `engines/` counts: that of `base`, if it has any, else the suite's."""
    here = workspace_root(base)
    return here if profile_files(here) else workspace_root(suite)


def profiles_for(
    suites: Sequence[LoadedSuite], engines: Sequence[str], model: str | None, base: Path
) -> dict[str, list[Profile]]:
    """By suite file, the profiles that run its cases: those asked for, else the suite's own.

    Raises UsageError for an engine that is not known here, and InvalidFilesError for variables of a
    suite that would send a real agent's requests, and its key, elsewhere.
    """
    chosen: dict[str, list[Profile]] = {}
    for suite in suites:
        root = root_with_engines(base, suite.path)
        profiles = [load_profile(name, root, os.environ) for name in engines]
        profiles = profiles or [own_profile(suite, root)]
        if model is not None:
            profiles = [profile.model_copy(update={"model": model}) for profile in profiles]
        if not is_trusted(os.environ) and any(p.engine != DEFAULT_ENGINE for p in profiles):
            what = "{} would send the agent's key to an address that the suite names"
            problems = [
                suite.document.problem(("environment", "env", name), what.format(name), ALLOW)
                for name in suite.suite.environment.env
                if ADDRESS.search(name)
            ]
            if problems:
                raise InvalidFilesError(problems)
        names = [profile.name for profile in profiles]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise UsageError(f"--engine {twice} is given twice", hint="name each profile once")
        chosen[str(suite.path)] = profiles
    return chosen


def own_profile(suite: LoadedSuite, root: Path) -> Profile:
    """The suite's own engine. Raises InvalidFilesError if there is none of that name."""
    own = suite.suite.engine
    if own is None:
        return load_profile(DEFAULT_ENGINE, root, os.environ)
    try:
        profile = load_profile(own.name, root, os.environ)
    except UsageError as unknown:
        fix = f"choose one with --engine: {', '.join(ADAPTERS)}"
        problem = suite.document.problem(("engine", "name"), unknown.message, fix)
        raise InvalidFilesError([problem]) from None
    updates: dict[str, str] = {}
    if own.model.name not in (None, "auto"):
        updates["model"] = str(own.model.name)
    address = own.model.base_url
    if address:
        loc = ("engine", "model", "base_url")
        why = address_problem(".".join(loc), address, os.environ, profile.base_url)
        if why is not None and profile.engine != DEFAULT_ENGINE:
            raise InvalidFilesError([suite.document.problem(loc, why)])
        updates["base_url"] = address
    return profile.model_copy(update=updates)


def require_scripts(plan: Plan) -> None:
    """Raises InvalidFilesError naming each case that the scripted engine has no script for."""
    missing = dict.fromkeys(
        job.loaded.path
        for job in plan.jobs
        if job.profile.engine == "scripted"
        and job.loaded.case.scripted is None
        and job.loaded.case.input.transcript is None  # then no agent is asked
    )
    what = "the scripted engine has no script for this case"
    fix = "add `scripted:`, or choose a real agent: --engine claude_code"
    if missing:
        raise InvalidFilesError([Problem(p, 1, 1, "scripted", what, fix) for p in missing])
