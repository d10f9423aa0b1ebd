"""JSONPaths as case files write them: read once, and refused where they cannot be used."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Annotated

from pydantic import AfterValidator

from skillup.schema.base import NonEmptyText

if TYPE_CHECKING:
    from jsonpath_ng import JSONPath

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


def jsonpath_problem(path: str) -> str | None:
    """Why `path` is no JSONPath that can be used; None if it is one."""
    try:
        compiled_path(path)
    except ValueError as trouble:
        return str(trouble)
    return None


def _is_path(value: str) -> str:
    problem = jsonpath_problem(value)
    if problem is not None:
        what, _, fix = problem.partition("; ")
        raise ValueError(f"{what} || {fix or 'write it like $.a.b[0]'}")
    return value


JsonPath = Annotated[NonEmptyText, AfterValidator(_is_path)]
