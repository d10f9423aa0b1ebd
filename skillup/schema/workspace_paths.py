"""Paths and globs of a workspace, as cases write them: relative, and never out of it."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Annotated

from pydantic import AfterValidator, BeforeValidator

from skillup.schema.base import NonEmptyText


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
    depth = 0
    for part in plain.split("/"):
        depth += {"..": -1, ".": 0, "": 0}.get(part, 1)
        if depth < 0:
            return f"the script {script} lies outside of the suite"
    return None


def _inside(value: str) -> str:
    problem = outside_problem(value)
    if problem is not None:
        what, _, fix = problem.partition("; ")
        raise ValueError(f"{what} || {fix}")
    return value


def _list_of_one(value: Hashable) -> object:
    return [value] if isinstance(value, str | int) else value


WorkspacePath = Annotated[NonEmptyText, AfterValidator(_inside)]
"""A file of the workspace, or a glob."""

WorkspacePaths = Annotated[
    list[WorkspacePath],
    BeforeValidator(_list_of_one, json_schema_input_type=list[str | int] | str | int),
]
