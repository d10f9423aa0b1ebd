"""Shell commands as Codex shows them: the shell taken off, and which skills they read."""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection
from pathlib import PurePath

_SHELLS = frozenset({"sh", "bash", "zsh", "dash", "ksh"})
_SHELL_OPTIONS = frozenset({"-c", "-lc", "-lic", "-ic"})

# They name a file without reading it.
_LOOKS_ONLY = re.compile(r"^\s*(ls|ll|stat|test|\[|file|find|wc|rm|mv|chmod|touch|echo)\b")


def inner_command(command: str) -> str:
    """What was to be run: `/bin/bash -lc 'echo hi'` is `echo hi`."""
    try:
        words = shlex.split(command)
    except ValueError:
        return command
    if len(words) == 3 and PurePath(words[0]).name in _SHELLS and words[1] in _SHELL_OPTIONS:
        return words[2]
    return command


def skills_read(command: str, skills: Collection[str]) -> list[str]:
    """The skills whose SKILL.md a command reads: for Codex, that is using them."""
    if "SKILL.md" not in command or _LOOKS_ONLY.match(command):
        return []
    return [
        name
        for name in skills
        if re.search(rf"(^|[\s'\"/=])skills/{re.escape(name)}([/'\"\s;&|)]|$)", command)
    ]
