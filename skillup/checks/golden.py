"""The check that compares with a reference file of the suite."""

from __future__ import annotations

import difflib

from skillup.checks.context import Subject
from skillup.checks.evidence import beginning
from skillup.checks.files import NO_SNAPSHOT, followed, text_of
from skillup.checks.finding import CannotEvaluateError, Finding, not_assertable
from skillup.checks.folding import plain
from skillup.checks.paths import normal_path, path_problem
from skillup.schema.check_specs import GoldenFile

_DIFF_LINES = 12


def golden_file(spec: GoldenFile, subject: Subject) -> Finding:
    """The answer, or a workspace file, is the reference; white space at line ends is ignored."""
    reference = subject.record.references.get(spec.path)
    if reference is None:
        return not_assertable(f"the reference {spec.path} was not found when the case ran")
    stored = text_of(reference, subject)
    if stored is None:
        raise CannotEvaluateError(f"the content of {spec.path} was not kept in the record")
    actual, name = subject.answer, "answer"
    if spec.file is not None:
        problem = path_problem(spec.file)
        if problem is not None:
            raise CannotEvaluateError(problem)
        files = subject.last.files
        if files is None:
            return not_assertable(NO_SNAPSHOT)
        name = normal_path(spec.file)
        state = followed(name, files)
        if state is None:
            return Finding(False, f"{name} is not there")
        content = text_of(state, subject)
        if content is None:
            raise CannotEvaluateError(f"the content of {name} was not kept in the record")
        actual = content
    wanted = _lines(stored)
    lines = _lines(actual)
    if wanted == lines:
        return Finding(True, f"the {name} is the same as {spec.path}", beginning(actual))
    return Finding(False, _difference(wanted, lines, spec.path, name), beginning(actual))


def _lines(text: str) -> list[str]:
    return [line.rstrip() for line in plain(text).strip().split("\n")]


def _difference(wanted: list[str], actual: list[str], from_name: str, to_name: str) -> str:
    # difflib's cost grows with the square of the length: beyond this a diff is no help anyway.
    if max(len(wanted), len(actual)) > 2000:
        at = next(
            (i for i, (a, b) in enumerate(zip(wanted, actual, strict=False)) if a != b),
            min(len(wanted), len(actual)),
        )
        return f"differs from line {at + 1} on"
    diff = list(difflib.unified_diff(wanted, actual, from_name, to_name, lineterm="", n=1))
    shown = [line[:200] for line in diff[:_DIFF_LINES]]
    if len(diff) > _DIFF_LINES:
        shown.append(f"… {len(diff) - _DIFF_LINES} more lines")
    return "\n".join(shown)
