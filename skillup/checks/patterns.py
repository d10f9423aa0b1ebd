"""Regexes of case files, searched for with a time limit.

They run in the `regex` library, because `re` cannot be stopped: ``(a|aa)+$`` on the wrong text
would hold up the whole run.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from skillup.checks.finding import CannotEvaluateError
from skillup.schema.patterns import compiled_pattern

if TYPE_CHECKING:
    import regex

_PER_SEARCH = 1.0
_PER_CHECK = 2.0


class Searcher:
    """Searches within one check, which together may take two seconds.

    They respect case, whatever `case_sensitive` says: `(?i)` in the pattern ignores it.
    """

    __slots__ = ("_left",)

    def __init__(self) -> None:
        self._left = _PER_CHECK

    def search(self, pattern: str, text: str) -> regex.Match[str] | None:
        """The first match. Raises CannotEvaluateError: no regex, or it took too long."""
        try:
            compiled = compiled_pattern(pattern, False)
        except ValueError as trouble:
            raise CannotEvaluateError(str(trouble)) from None
        started = time.monotonic()
        try:
            return compiled.search(text, timeout=min(_PER_SEARCH, self._left))
        except TimeoutError:
            message = f"the pattern /{pattern}/ took too long; write it without nested repetition"
            raise CannotEvaluateError(message) from None
        finally:
            self._left = max(0.001, self._left - (time.monotonic() - started))
