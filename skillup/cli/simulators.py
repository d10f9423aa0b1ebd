"""Who plays simulated users in a run that is started from the command line."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from skillup.cli.engines import root_with_engines
from skillup.errors import Problem
from skillup.judges.models.client import ModelOptions, Models
from skillup.judges.users import Casting
from skillup.judges.users.casting import NOBODY
from skillup.load.model import LoadedSuite
from skillup.load.profiles import load_profile
from skillup.process.secrets import Secrets
from skillup.schema.profile import Profile
from skillup.schema.simulation import playing_model


def casting_of(
    models: Models, base: Path, environment: Mapping[str, str], secrets: Secrets
) -> Casting:
    """Players for the suites of a run; profiles are those of the workspace of `base`."""

    def profile(name: str, root: Path) -> Profile:
        return load_profile(name, root_with_engines(base, root), environment)

    return Casting(
        models.seen_from, models.problem, profile, environment, secrets.mask, models.pacing, secrets
    )


def unplayable_users(
    suites: Sequence[LoadedSuite], base: Path, environment: Mapping[str, str]
) -> Iterator[Problem]:
    """Warnings: the players of simulated users that a run could not ask; a line for each reason."""
    secrets = Secrets.from_environment(environment)
    models = Models(ModelOptions(environment, secrets.mask))
    casting = casting_of(models, base, environment, secrets)
    for suite in suites:
        given = suite.suite.user_simulator
        told: set[str] = set()
        for loaded in suite.cases:
            if given is None and playing_model(given, loaded.case) is None:
                continue  # the case's own problems say so
            why = casting.known_problem(loaded.case, given, suite.root)
            if why is not None and why != NOBODY and why not in told:
                told.add(why)
                line, column = suite.document.locate(("user_simulator",))
                fix = "a run of the cases that need it would be an error"
                yield Problem(suite.path, line, column, "user_simulator", why, fix, "warning")
