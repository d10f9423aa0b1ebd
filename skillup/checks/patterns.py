"""Regexes of case files: compiled once, run with a time limit.

They run in the `regex` library, because `re` cannot be stopped: ``(a|aa)+$`` on the wrong text
would hold up the whole run. Patterns written for Go (skill-up) are read too.
"""

from __future__ import annotations

import re
import time
from functools import lru_cache
from typing import TYPE_CHECKING

from skillup.checks.finding import CannotEvaluateError

if TYPE_CHECKING:
    import regex

_PER_SEARCH = 1.0
_PER_CHECK = 2.0

_GO_ONLY = re.compile(
    r"\\Q(?P<literal>.*?)(?:\\E|\Z)|\\x\{(?P<code>[0-9A-Fa-f]{1,6})\}|\\(?P<end>z)"
    r"|\(\?(?P<on>[imsU]*)(?P<off>-[imsU]+)?(?P<close>[:)])|\\.",
    re.DOTALL,
)


def pattern_problem(pattern: str) -> str | None:
    """Why `pattern` is no regex; None if it is one."""
    try:
        _compiled(pattern, False)
    except CannotEvaluateError as trouble:
        return str(trouble)
    return None


def named_groups(pattern: str) -> tuple[int, frozenset[str]]:
    """How many groups a valid `pattern` has, and the names among them."""
    compiled = _compiled(pattern, False)
    return compiled.groups, frozenset(compiled.groupindex)


class Searcher:
    """Searches within one check, which together may take two seconds."""

    __slots__ = ("_fold", "_left")

    def __init__(self, *, fold: bool) -> None:
        self._fold = fold
        self._left = _PER_CHECK

    def search(self, pattern: str, text: str) -> regex.Match[str] | None:
        """The first match. Raises CannotEvaluateError: no regex, or it took too long."""
        compiled = _compiled(pattern, self._fold)
        started = time.monotonic()
        try:
            return compiled.search(text, timeout=min(_PER_SEARCH, self._left))
        except TimeoutError:
            message = f"the pattern /{pattern}/ took too long; write it without nested repetition"
            raise CannotEvaluateError(message) from None
        finally:
            self._left = max(0.001, self._left - (time.monotonic() - started))


@lru_cache(maxsize=4096)
def _compiled(pattern: str, fold: bool) -> regex.Pattern[str]:
    import regex

    try:
        return regex.compile(from_go(pattern), regex.IGNORECASE if fold else 0)
    except (regex.error, OverflowError, RecursionError, ValueError) as trouble:
        message = f"/{pattern}/ is not a valid regex: {trouble}"
        raise CannotEvaluateError(message) from None


def from_go(pattern: str) -> str:
    r"""`pattern` with Go's own spellings replaced: ``\z``, ``\Q…\E``, ``\x{…}``, ``(?U)``.

    The flag ``U`` (lazy by default) is left out: it changes how much is matched, never whether.
    """
    return _GO_ONLY.sub(_replace, pattern) if "\\" in pattern or "(?" in pattern else pattern


def _replace(match: re.Match[str]) -> str:
    if match["literal"] is not None:
        return re.escape(match["literal"])
    if match["code"] is not None:
        code = int(match["code"], 16)
        return f"\\U{code:08x}" if code <= 0x10FFFF else match[0]
    if match["end"] is not None:
        return r"\Z"
    if match["close"] is None or "U" not in match[0]:
        return match[0]
    on = match["on"].replace("U", "")
    off = (match["off"] or "").replace("U", "").rstrip("-")
    if match["close"] == ")":
        return f"(?{on}{off})" if on or off else ""
    return f"(?{on}{off}:"
