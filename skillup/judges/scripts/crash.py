"""Whether a script broke down instead of judging: what it says on stderr tells."""

from __future__ import annotations

import re
from pathlib import Path

_TRACEBACK = "Traceback (most recent call last):"
_SYNTAX = re.compile(r"^(?:SyntaxError|IndentationError|TabError): ", re.MULTILINE)
_FRAME = re.compile(r'^ +File "(.*?)", line \d+', re.MULTILINE)


def crash_of(exit_code: int, stderr: str, workspace: Path | None) -> str | None:
    """What Python reports of its end; None: it did not crash.

    A program in `workspace`, which the script has run and found broken, is the work of the agent:
    that it crashed is the script's finding.
    """
    if exit_code != 1:
        return None
    at = stderr.rfind(_TRACEBACK)
    if at == -1 and not _SYNTAX.search(stderr):
        return None
    told = stderr[max(at, 0) :]
    first = _FRAME.search(told)
    if first is None or (workspace is not None and _lies_in(first[1], workspace)):
        return None
    return told.strip().rsplit("\n", 1)[-1]


def _lies_in(name: str, workspace: Path) -> bool:
    if name.startswith("<"):  # <stdin>, <string>: words of the script itself
        return False
    return (workspace / name).resolve().is_relative_to(workspace.resolve())
