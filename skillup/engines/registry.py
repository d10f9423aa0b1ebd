"""Which adapters there are. Each is imported when it is asked for, not before."""

from __future__ import annotations

from collections.abc import Callable
from difflib import get_close_matches

from skillup.engines.base import Engine
from skillup.errors import UsageError


def _claude_code() -> Engine:
    from skillup.engines.claude_code import ClaudeCode

    return ClaudeCode()


def _codex() -> Engine:
    from skillup.engines.codex import Codex

    return Codex()


def _scripted() -> Engine:
    from skillup.engines.scripted import ScriptedEngine

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
