"""The adapters by name; each is imported when it is asked for, not before."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import cache
from importlib import import_module
from pathlib import Path

from skillup.adapters import ADAPTERS
from skillup.engines.base import Engine
from skillup.engines.cli_runner import CliEngine
from skillup.engines.environment import EngineHome, login_secrets
from skillup.engines.session_files import SessionReader
from skillup.errors import UsageError, near_miss
from skillup.schema.profile import Profile
from skillup.workspace.disk import leads_out


def get_engine(name: str) -> Engine:
    """The adapter of that name. Raises UsageError, with the nearest name, if there is none."""
    if name in ADAPTERS:
        module, _, class_name = ADAPTERS[name].target.partition(":")
        make: Callable[..., Engine] = getattr(import_module(module), class_name)
        return make(name) if ADAPTERS[name].described else make()
    near = near_miss(name, ADAPTERS)
    hint = f"did you mean `{near}`?" if near else f"known adapters: {', '.join(ADAPTERS)}"
    raise UsageError(f"there is no engine adapter `{name}`", hint=hint)


def engine_of(profile: Profile) -> Engine:
    """The adapter of a profile, which may describe its agent itself. Raises UsageError."""
    if profile.custom is not None:
        from skillup.engines.command.custom import custom_engine

        return custom_engine(profile.name, profile.custom)
    if profile.agent is None:
        return get_engine(profile.engine)
    from skillup.engines.command.engine import make_engine

    return make_engine(profile.engine, profile.agent)


def tokens_of(profile: Profile, environment: Mapping[str, str]) -> dict[str, str]:
    """The tokens of the user's login file, if that profile's CLI has one; secrets, by name."""
    engine = engine_of(profile)
    return login_secrets(engine.login_file(environment)) if isinstance(engine, CliEngine) else {}


@cache
def _engines() -> list[CliEngine]:
    found = [get_engine(name) for name, adapter in ADAPTERS.items() if not adapter.described]
    return [engine for engine in found if isinstance(engine, CliEngine)]


def session_readers() -> list[tuple[type[SessionReader], EngineHome]]:
    """Of the CLIs' users' own sessions, with the home that they are in."""
    return [(e.sessions, e.spec.home) for e in _engines() if e.sessions and e.spec.home]


def remove_logins(trial_home: Path) -> None:
    """Removes the logins from a trial's home: it is kept, and nobody works in it."""
    for engine in _engines():
        home = engine.spec.home
        if home is not None and (login := home.login_in(trial_home)) is not None:
            if leads_out(login.parent, trial_home):
                continue  # Not the trial's: its agent has made a link
            with suppress(OSError):
                login.unlink()
