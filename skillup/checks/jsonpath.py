"""JSONPath: following one; and the check of a value inside the answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from skillup.checks.answer_json import answer_json, whole_json
from skillup.checks.context import Subject
from skillup.checks.evidence import around, beginning, listed
from skillup.checks.finding import CannotEvaluateError, Finding
from skillup.checks.folding import plain
from skillup.checks.json_schemas import violation
from skillup.checks.patterns import Searcher
from skillup.checks.values import as_text, same_value
from skillup.schema.check_specs import JsonMatch
from skillup.schema.jsonpaths import compiled_path

if TYPE_CHECKING:
    from jsonpath_ng import JSONPath


def find_values(path: str, root: Any) -> list[Any]:
    """All values at `path`. Raises CannotEvaluateError for a bad path."""
    compiled = _compiled(path)
    try:
        return [match.value for match in compiled.find(root)]
    except Exception as trouble:  # noqa: BLE001 - jsonpath-ng fails in many ways on odd data
        what = f"{type(trouble).__name__}: {trouble}"
        raise CannotEvaluateError(f"the JSONPath {path} could not be followed: {what}") from None


def _compiled(path: str) -> JSONPath:
    try:
        return compiled_path(path)
    except ValueError as trouble:
        raise CannotEvaluateError(str(trouble)) from None


def root_of(spec: JsonMatch, answer: str) -> tuple[bool, Any]:
    """Whether the answer holds JSON as `spec` wants it, and its value."""
    return (whole_json if spec.whole else answer_json)(answer)


def json_value(spec: JsonMatch, subject: Subject) -> Finding:
    """A value inside the answer, read as JSON; an answer that holds none fails."""
    is_json, root = root_of(spec, subject.answer)
    if not is_json:
        _compiled(spec.path)
        what = "the answer as a whole is not JSON" if spec.whole else "the answer is not JSON"
        return Finding(False, what, beginning(subject.answer))
    values = find_values(spec.path, root)
    if "equals" in spec.model_fields_set:
        exact = subject.case_sensitive
        hit = [one for one in values if same_value(spec.equals, one, case_sensitive=exact)]
        return _say(bool(hit), values, hit, root)
    if spec.matches is not None:
        return _matching(spec.matches, values, root)
    if "json_schema" in spec.model_fields_set:
        return _valid(spec.json_schema, values, root)
    return _say((spec.exists is not False) == bool(values), values, values, root)


def _matching(pattern: str, values: list[Any], root: Any) -> Finding:
    searcher = Searcher()
    for value in values:
        text = plain(as_text(value))
        match = searcher.search(pattern, text)
        if match is not None:
            return Finding(True, f"found {beginning(text, 80)}", around(text, match.span()))
    return _say(False, values, [], root)


def _valid(schema: Any, values: list[Any], root: Any) -> Finding:
    broken = ""
    for value in values:
        found = violation(schema, value)
        if found is None:
            return Finding(True, "valid by the JSON Schema", beginning(as_text(value)))
        broken = broken or f"not valid by the JSON Schema: {found}"
    return Finding(False, broken or "nothing at this path", beginning(as_text(root)))


def _say(passed: bool, values: list[Any], hits: list[Any], root: Any) -> Finding:
    if not values:
        return Finding(passed, "nothing at this path", beginning(as_text(root)))
    shown = listed((beginning(as_text(value), 80) or '""' for value in values), longest=200)
    return Finding(passed, f"found {shown}", beginning(as_text((hits or values)[0])))
