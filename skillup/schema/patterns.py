"""Regexes as case files write them: read once, and refused where they are no regexes.

They are those of the `regex` library, which can be stopped when a search takes too long. Patterns
written for Go (skill-up) are read too.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Annotated

from pydantic import AfterValidator

from skillup.schema.base import NonEmptyText

if TYPE_CHECKING:
    import regex

_GO_ONLY = re.compile(
    r"\\Q(?P<literal>.*?)(?:\\E|\Z)|\\x\{(?P<code>[0-9A-Fa-f]{1,6})\}|\\(?P<end>z)"
    r"|\(\?(?P<on>[imsU]*)(?P<off>-[imsU]+)?(?P<close>[:)])|\\.",
    re.DOTALL,
)


@lru_cache(maxsize=4096)
def compiled_pattern(pattern: str, fold: bool) -> regex.Pattern[str]:
    """`pattern`, ready to search with; `fold` ignores case. Raises ValueError if it is none."""
    import regex

    try:
        return regex.compile(from_go(pattern), regex.IGNORECASE if fold else 0)
    except (regex.error, OverflowError, RecursionError, ValueError) as trouble:
        raise ValueError(f"/{pattern}/ is not a valid regex: {trouble}") from None


def pattern_problem(pattern: str) -> str | None:
    """Why `pattern` is no regex; None if it is one."""
    try:
        compiled_pattern(pattern, False)
    except ValueError as trouble:
        return str(trouble)
    return None


def kept_group(pattern: str) -> str | int:
    """The group whose text a capture keeps: `value`, else the only one.

    Raises ValueError if there is no such group, or `pattern` is no regex.
    """
    compiled = compiled_pattern(pattern, False)
    if "value" in compiled.groupindex:
        return "value"
    if compiled.groups == 1:
        return 1
    said = f"has {compiled.groups} groups" if compiled.groups else "has no group"
    raise ValueError(f"/{pattern}/ {said}; name the one to keep: (?P<value>…)")


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


def _is_regex(value: str) -> str:
    problem = pattern_problem(value)
    if problem is not None:
        raise ValueError(f"{problem} || correct it, or write a text as it is with `contains`")
    return value


def _keeps_a_group(value: str) -> str:
    try:
        kept_group(value)
    except ValueError as trouble:
        what, _, fix = str(trouble).partition("; ")
        raise ValueError(f"{what} || {fix or 'correct it'}") from None
    return value


Regex = Annotated[NonEmptyText, AfterValidator(_is_regex)]
CapturePattern = Annotated[NonEmptyText, AfterValidator(_keeps_a_group)]
"""A regex that says which of its groups is meant."""
