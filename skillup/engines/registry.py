"""Which adapters there are. Each is imported when it is asked for, not before."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from difflib import get_close_matches
from functools import cache
from importlib import import_module
from pathlib import Path

from skillup.engines.base import Engine, LogsInByFile
from skillup.engines.cli_runner import CliEngine
from skillup.engines.environment import EngineHome
from skillup.engines.login import login_secrets
from skillup.engines.session_entries import SessionLibrary
from skillup.errors import UsageError

ENGINES = {
    "claude_code": "skillup.engines.claude_code.engine:ClaudeCode",
    "codex": "skillup.engines.codex.engine:Codex",
    "scripted": "skillup.engines.scripted.engine:ScriptedEngine",
}


def get_engine(name: str) -> Engine:
    """The adapter of that name. Raises UsageError, with the nearest name, if there is none."""
    if name in ENGINES:
        module, _, class_name = ENGINES[name].partition(":")
        engine: Engine = getattr(import_module(module), class_name)()
        return engine
    near = get_close_matches(name, ENGINES, n=1)
    hint = f"did you mean `{near[0]}`?" if near else f"known adapters: {', '.join(ENGINES)}"
    raise UsageError(f"there is no engine adapter `{name}`", hint=hint)


def tokens_of(name: str, environment: Mapping[str, str]) -> dict[str, str]:
    """The tokens of the user's login file, if that adapter's CLI has one; secrets, by name."""
    engine = get_engine(name)
    return login_secrets(engine.login_file(environment)) if isinstance(engine, LogsInByFile) else {}


@cache
def session_libraries() -> dict[str, SessionLibrary]:
    """The adapters whose users have sessions of their own, by name."""
    engines = [get_engine(name) for name in ENGINES]
    return {engine.name: engine for engine in engines if isinstance(engine, SessionLibrary)}


@cache
def _homes() -> list[EngineHome]:
    engines = [get_engine(name) for name in ENGINES]
    return [e.spec.home for e in engines if isinstance(e, CliEngine) and e.spec.home is not None]


def remove_logins(trial_home: Path) -> None:
    """Removes the logins from a trial's home: it is kept, and nobody works in it."""
    for home in _homes():
        with suppress(OSError):
            home.login_in(trial_home).unlink()
