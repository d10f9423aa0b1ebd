"""How a CLI logs in: by a variable that the profile names, by its own variables, by its file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from skillup.engines.base import TrialContext
from skillup.engines.environment import EngineHome, login_secrets, lookup
from skillup.process.secrets import Secrets
from skillup.schema.profile import Profile


@dataclass(frozen=True, slots=True)
class Login:
    """`variable` is the user's name for the key, `value` its value; both None: the login file."""

    variable: str | None = None
    value: str | None = None
    missing: str | None = None
    """What is wrong: the profile names a variable that is not set."""


def find_login(trial: TrialContext, own_variables: Sequence[str]) -> Login:
    """The key that the profile names, else the first of the CLI's own variables that is set."""
    named = trial.profile.api_key_env
    if named is not None:
        value = lookup(trial, named)
        return Login(named, value) if value else Login(missing=_not_set(named))
    for name in own_variables:
        value = lookup(trial, name)
        if value:
            return Login(name, value)
    return Login()


def describe_login(
    profile: Profile,
    environment: Mapping[str, str],
    own_variables: Sequence[str],
    home: EngineHome | None,
) -> tuple[str | None, str | None]:
    """How a trial would log in, and what is wrong with that: for `doctor`.

    `home` is None where the login file would not be used.
    """
    variables = {**environment, **profile.env}
    if profile.api_key_env is not None:
        if variables.get(profile.api_key_env):
            return f"variable {profile.api_key_env}", None
        return None, _not_set(profile.api_key_env)
    for name in own_variables:
        if variables.get(name):
            return f"variable {name}", None
    login = home.login_of(environment) if home is not None else None
    return (f"login file {login}", None) if login else (None, None)


def secrets_of(trial: TrialContext, login_file: Path | None) -> Secrets:
    """All that must not be written in this trial: credential variables and the login's tokens.

    What the run spares (:attr:`Secrets.spared`) is left here, too: checks look for it.
    """
    variables = {**trial.environment, **trial.extra_env}
    secrets = trial.secrets.also_of(variables, (trial.profile.api_key_env,))
    tokens = login_secrets(login_file)
    return secrets.also(tokens) if tokens else secrets


def _not_set(name: str) -> str:
    return f"the variable {name}, which the profile names in `api_key_env`, is not set"
