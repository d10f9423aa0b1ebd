"""Checks that a model reads: prompts of the user's own, and whether there is a model at all."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from skillup.errors import Problem
from skillup.load.yaml_reader import Document, field_name
from skillup.schema.case import Case
from skillup.schema.checks import CheckKeys
from skillup.schema.judge_prompts import PROMPT_VARIABLES, unknown_variables

Loc = tuple[str | int, ...]
Asked = tuple[Loc, str, Any]
"""A check: its place, its key, its arguments."""
_READ_BY_MODEL = ("rubric", "similar", "expected_output", "relevance", "answer_quality")


def reader_problems(
    case: Case, checks: Iterable[tuple[Loc, CheckKeys, int]], document: Document
) -> Iterator[Problem]:
    """What is wrong with those of `checks`, all of the case's, that a model reads."""
    asked = [*_read_by_model(checks), *_expected_outputs(case)]
    for loc, key, spec in asked:
        prompt = getattr(spec, "prompt", None)
        if prompt is not None:
            yield from _unknown(prompt, (*loc, key, "prompt"), document)
    if case.judge_model is None:
        yield from _without_model(asked, document)


def _read_by_model(checks: Iterable[tuple[Loc, CheckKeys, int]]) -> Iterator[Asked]:
    for loc, keys, _ in checks:
        for key, spec in keys.given():
            if key in _READ_BY_MODEL:
                yield loc, key, spec


def _expected_outputs(case: Case) -> Iterator[Asked]:
    if case.expected_output is not None:
        yield (), "expected_output", case.expected_output
    for number, turn in enumerate(case.input.turns or ()):
        if turn.expected_output is not None:
            yield ("input", "turns", number), "expected_output", turn.expected_output


def _unknown(prompt: str, loc: Loc, document: Document) -> Iterator[Problem]:
    known = ", ".join("{{" + name + "}}" for name in PROMPT_VARIABLES)
    for name in unknown_variables(prompt):
        line, column = document.locate(loc)
        found = _find(document, name, line)
        line, column = found or (line, column)
        yield Problem(
            document.path, line, column, field_name(loc),
            f"{{{{{name}}}}} is not a variable of a judge's prompt", f"known here: {known}",
        )  # fmt: skip


def _find(document: Document, name: str, from_line: int) -> tuple[int, int] | None:
    """Where ``{{name}}`` stands in the file's own text, at or below a line."""
    pattern = re.compile(r"\{\{\s*" + re.escape(name) + r"\s*\}\}")
    for number, line in enumerate(document.text.splitlines(), start=1):
        if number >= from_line and (match := pattern.search(line)):
            return number, match.start() + 1
    return None


def _without_model(asked: Iterable[Asked], document: Document) -> Iterator[Problem]:
    """One warning for the case, at the first check that needs a model."""
    for loc, key, spec in asked:
        if key == "similar" and spec.embedding_model is not None:
            continue
        line, column = document.locate((*loc, key))
        yield Problem(
            document.path, line, column, field_name((*loc, key)),
            f"`{key}` is read by a model, and none is named",
            "write `judge: {model: …}` in eval.yaml, or `judge_model` in the case; without one, "
            "and without --judge-model, a run of this case is an error",
            "warning",
        )  # fmt: skip
        return
