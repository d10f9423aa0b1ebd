"""Which adapters there are. Each is imported when it is asked for, not before."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from difflib import get_close_matches

from skillup.engines.base import Engine, LogsInByFile
from skillup.engines.environment import login_secrets
from skillup.errors import UsageError


def _claude_code() -> Engine:
    from skillup.engines.claude_code.engine import ClaudeCode

    return ClaudeCode()


def _codex() -> Engine:
    from skillup.engines.codex.engine import Codex

    return Codex()


def _scripted() -> Engine:
    from skillup.engines.scripted.engine import ScriptedEngine

    return ScriptedEngine()


ENGINES: dict[str, Callable[[], Engine]] = {
    "claude_code": _claude_code,
    "codex": _codex,
    "scripted": _scripted,
}


def get_engine(name: str) -> Engine:
    """The adapter of that name. Raises UsageError, with the nearest name, if there is none."""
    if name in ENGINES:
        return ENGINES[name]()
    near = get_close_matches(name, ENGINES, n=1)
    hint = f"did you mean `{near[0]}`?" if near else f"known adapters: {', '.join(ENGINES)}"
    raise UsageError(f"there is no engine adapter `{name}`", hint=hint)


def tokens_of(name: str, environment: Mapping[str, str]) -> dict[str, str]:
    """The tokens of the user's login file, if that adapter's CLI has one; secrets, by name."""
    engine = get_engine(name)
    return login_secrets(engine.login_file(environment)) if isinstance(engine, LogsInByFile) else {}
