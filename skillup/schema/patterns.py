"""Regexes as case files write them: read once, and refused where they are no regexes.

They are those of the `regex` library, which can be stopped when a search takes too long. Patterns
written for Go (skill-up) are read too.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Annotated

from pydantic import AfterValidator, BeforeValidator

from skillup.schema.base import NonEmptyText, Texts, text_list

if TYPE_CHECKING:
    import regex
    from jsonpath_ng import JSONPath


_GO_ONLY = re.compile(
    r"\\Q(?P<literal>.*?)(?:\\E|\Z)|\\x\{(?P<code>[0-9A-Fa-f]{1,6})\}|\\(?P<end>z)|\\.",
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


def kept_group(pattern: str) -> str | int:
    """The group whose text a capture keeps: `value`, else the only one.

    Raises ValueError if there is no such group, or `pattern` is no regex.
    """
    compiled = compiled_pattern(pattern, False)
    if "value" in compiled.groupindex:
        return "value"
    if compiled.groups == 1:
        return 1
    groups = f"has {compiled.groups} groups" if compiled.groups else "has no group"
    raise ValueError(f"/{pattern}/ {groups}; name the one to keep: (?P<value>…)")


def from_go(pattern: str) -> str:
    r"""`pattern` with Go's own spellings replaced: ``\z``, ``\Q…\E``, ``\x{…}``."""
    return _GO_ONLY.sub(_replace, pattern)


def _replace(match: re.Match[str]) -> str:
    if match["literal"] is not None:
        return re.escape(match["literal"])
    if match["code"] is not None and int(match["code"], 16) <= 0x10FFFF:
        return f"\\U{int(match['code'], 16):08x}"
    return r"\Z" if match["end"] is not None else match[0]


def _valid(check: Callable[[str], object], fix: str) -> AfterValidator:
    """Refuses a text for which `check` raises ValueError (``what; fix``), else with this `fix`."""

    def validate(value: str) -> str:
        try:
            check(value)
        except ValueError as trouble:
            what, _, own = str(trouble).partition("; ")
            raise ValueError(f"{what} || {own or fix}") from None
        return value

    return AfterValidator(validate)


_CORRECT_IT = "correct it, or write a text as it is with `contains`"
Regex = Annotated[NonEmptyText, _valid(lambda text: compiled_pattern(text, False), _CORRECT_IT)]
Regexes = Annotated[list[Regex], BeforeValidator(text_list, json_schema_input_type=Texts)]
CapturePattern = Annotated[NonEmptyText, _valid(kept_group, "correct it")]
"""A regex that says which of its groups is meant."""


# JSONPaths as case files write them: read once, and refused where they cannot be used.

# jsonpath-ng hands these to `re`, which has no time limit.
_UNLIMITED = re.compile(r"=~|`(?:sub|split)\(")


@lru_cache(maxsize=1024)
def compiled_path(path: str) -> JSONPath:
    """`path`, ready to look with. Raises ValueError if it is none, or has a regex inside."""
    import warnings

    from jsonpath_ng.ext.parser import parse

    if _UNLIMITED.search(path):
        message = f"the JSONPath {path} has a regex inside; use `matches` beside `path` instead"
        raise ValueError(message)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            return parse(path)
    except Exception as trouble:  # noqa: BLE001 - its parser raises more than its own errors
        raise ValueError(f"{path} is not a valid JSONPath: {trouble}") from None


JsonPath = Annotated[NonEmptyText, _valid(compiled_path, "write it like $.a.b[0]")]


# Paths and globs of a workspace, as cases write them: relative, and never out of it.


def outside_problem(path: str) -> str | None:
    """Why `path` (or glob) cannot lie in a workspace, as ``what; fix``; None if it can."""
    plain = path.replace("\\", "/")
    if plain.startswith(("/", "~/")) or plain[1:3] == ":/":
        return f"{path} is absolute; write it relative to the workspace"
    if ".." in plain.split("/"):
        return f"{path} leads out of the workspace; write it without `..`"
    return None


def outside_suite(script: str) -> str | None:
    """Why a script with this path does not lie in the suite; None if it does."""
    plain = script.replace("\\", "/")
    if plain.startswith(("/", "~/")) or plain[1:3] == ":/":
        return f"the script {script} is named by an absolute path, and would be missing elsewhere"
    if posixpath.normpath(plain).split("/")[0] == "..":
        return f"the script {script} lies outside of the suite"
    return None


def _inside(value: str) -> None:
    problem = outside_problem(value)
    if problem is not None:
        raise ValueError(problem)


WorkspacePath = Annotated[NonEmptyText, _valid(_inside, "")]  # A file of the workspace, or a glob

WorkspacePaths = Annotated[
    list[WorkspacePath],
    BeforeValidator(text_list, json_schema_input_type=list[str | int] | str | int),
]
