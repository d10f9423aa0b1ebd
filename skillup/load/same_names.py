"""Suites that have the same name, told apart: results, gates and histories go by a suite's name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import takewhile
from pathlib import Path

from skillup.errors import Problem
from skillup.load.discover import DATASET_ENDINGS
from skillup.load.model import LoadedSuite
from skillup.load.semantics import problem_at


def told_apart(suites: Sequence[LoadedSuite], problems: list[Problem]) -> list[LoadedSuite]:
    """`suites`; those of the same name have what differs in their paths behind it: ``keeper (a)``.

    They have it wherever they lie together. Each is told of in `problems`, as a warning: loaded
    alone, it has its own name.
    """
    same: dict[str, list[Path]] = {}
    for suite in suites:
        same.setdefault(suite.name, []).append(suite.path)
    apart = {path: where for paths in same.values() for path, where in _differences(paths).items()}
    named = []
    for suite in suites:
        if len(same[suite.name]) == 1:
            named.append(suite)
            continue
        name = f"{suite.name} ({apart[suite.path]})"
        named.append(replace(suite, name=name))
        if suite.path.suffix in DATASET_ENDINGS:
            continue  # it cannot have a name of its own
        message = f"{len(same[suite.name])} suites are called {suite.name}; here this is `{name}`"
        fix = "give each a name of its own, by which runs can be compared whatever they hold"
        problems.append(problem_at(suite.document, ("name",), message, fix, severity="warning"))
    return named


def _differences(paths: Sequence[Path]) -> dict[Path, str]:
    """The part of each path between what all begin with and what all end with."""
    parts = [path.parts for path in paths]
    shortest = min(map(len, parts))
    before = _common(parts, shortest)
    after = _common([part[::-1] for part in parts], shortest - before)
    return {path: "/".join(path.parts[before : len(path.parts) - after]) or "." for path in paths}


def _common(parts: Sequence[Sequence[str]], most: int) -> int:
    """How many of the first `most` parts are the same in all."""
    alike = (len(set(column)) == 1 for column in zip(*parts, strict=False))
    return min(most, len(list(takewhile(bool, alike))))
