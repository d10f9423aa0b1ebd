"""JSONPath: following one; and the check of a value inside the answer."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import partial
from typing import Any

from skillup.checks.context import (
    CannotEvaluateError,
    CheckSubject,
    Finding,
    around,
    beginning,
    listed,
    plain,
)
from skillup.checks.text import Searcher, folded
from skillup.schema.check_specs import JsonMatch
from skillup.schema.grade import EvidenceSpan
from skillup.schema.patterns import compiled_path

# Values against a JSON Schema of the suite's.


def violation(schema: Any, value: Any) -> str | None:
    """What of `value` breaks the schema most; None: nothing does.

    Raises CannotEvaluateError for a reference that leads nowhere, and a regex that takes too long.
    """
    from jsonschema.exceptions import ValidationError, best_match
    from jsonschema.validators import Draft202012Validator, extend, validator_for
    from referencing.jsonschema import EMPTY_REGISTRY

    # The keyword with patterns, which jsonschema would hand to `re`: that has no time limit. Those
    # of `patternProperties` are refused when the case is read.
    def pattern(_: Any, pattern: str, value: Any, __: Any) -> Iterator[Any]:
        if isinstance(value, str) and Searcher().search(pattern, value) is None:
            yield ValidationError(f"{value!r} does not match {pattern!r}")

    base = validator_for(schema, default=Draft202012Validator)
    own: Any = extend(base, {"pattern": pattern})  # type: ignore[no-untyped-call]
    try:
        check = own(schema, registry=EMPTY_REGISTRY, format_checker=base.FORMAT_CHECKER)
        worst = best_match(check.iter_errors(value))
    except CannotEvaluateError:
        raise
    except Exception as trouble:  # noqa: BLE001 - references, recursion: a schema has many ways
        what = f"{type(trouble).__name__}: {trouble}"
        raise CannotEvaluateError(f"the JSON Schema cannot be applied: {what}") from None
    if worst is None:
        return None
    return f"{worst.json_path}: {beginning(worst.message, 300)}"


# The JSON in an answer: agents wrap it in words and fences.

_FENCE = "```"
_LANGUAGE = re.compile(r"```[ \t]*(\w*)")


def answer_json(answer: str) -> tuple[bool, Any]:
    """Whether there is JSON in the answer, and its value.

    The whole answer; else the last fenced block that is JSON, one marked ``json`` first; else what
    stands between the first and the last brace or bracket.
    """
    for candidate in _candidates(answer):
        try:
            return True, json.loads(candidate)
        except (ValueError, RecursionError):
            continue
    return False, None


def root_of(spec: JsonMatch, answer: str) -> tuple[bool, Any]:
    """Whether the answer holds JSON as `spec` wants it, and its value."""
    if not spec.whole:
        return answer_json(answer)

    def refuse(constant: str) -> Any:
        raise ValueError(f"{constant} is no JSON")

    try:
        return True, json.loads(answer, parse_constant=refuse)
    except (ValueError, RecursionError):
        return False, None


def _candidates(answer: str) -> Iterator[str]:
    text = answer.replace("\r\n", "\n").strip().removeprefix("\ufeff")
    yield text
    blocks = list(_blocks(text))
    yield from (body for language, body in reversed(blocks) if language in ("json", "jsonc"))
    yield from (body for language, body in reversed(blocks) if language not in ("json", "jsonc"))
    spans = [(text.find(opening), text.rfind(closing)) for opening, closing in ("{}", "[]")]
    yield from (text[start : end + 1] for start, end in sorted(spans) if 0 <= start < end)


def _blocks(text: str) -> Iterator[tuple[str, str]]:
    """The language and body of each fenced block, line by line: one without an end is none."""
    language: str | None = None
    body: list[str] = []
    for line in text.split("\n"):
        marked = line.strip(" \t")
        if language is None:
            opening = _LANGUAGE.match(marked)
            if opening is not None:
                language, body = opening[1].lower(), []
        elif marked == _FENCE:
            yield language, "\n".join(body)
            language = None
        else:
            body.append(line)


# Comparing values that came from JSON and YAML.


def same_value(wanted: Any, actual: Any, *, case_sensitive: bool, partly: bool = False) -> bool:
    """Equal as JSON means it: 1 is 1.0, true is not 1. Keys of mappings always respect case.

    With `partly`, a mapping may have more keys than are wanted of it.
    """
    if isinstance(wanted, bool) or isinstance(actual, bool):
        return wanted is actual
    if isinstance(wanted, str) and isinstance(actual, str):
        one, other = (folded(text, case_sensitive=case_sensitive) for text in (wanted, actual))
        return one == other
    same = partial(same_value, case_sensitive=case_sensitive, partly=partly)
    if isinstance(wanted, dict) and isinstance(actual, dict):
        if not (wanted.keys() <= actual.keys() if partly else wanted.keys() == actual.keys()):
            return False
        return all(same(v, actual[k]) for k, v in wanted.items())
    if isinstance(wanted, list) and isinstance(actual, list):
        return len(wanted) == len(actual) and all(
            same(w, a) for w, a in zip(wanted, actual, strict=True)
        )
    return bool(wanted == actual)


def shown(value: Any) -> str:
    """A value as it stands in JSON."""
    return json.dumps(value, ensure_ascii=False, default=str)


def as_text(value: Any) -> str:
    """A value as the text that patterns are matched with; null is the empty text."""
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    return shown(value)


def find_values(path: str, root: Any) -> list[Any]:
    """All values at `path`. Raises CannotEvaluateError for a bad path."""
    try:
        compiled = compiled_path(path)
    except ValueError as trouble:
        raise CannotEvaluateError(str(trouble)) from None
    try:
        return [match.value for match in compiled.find(root)]
    except Exception as trouble:  # noqa: BLE001 - jsonpath-ng fails in many ways on odd data
        what = f"{type(trouble).__name__}: {trouble}"
        raise CannotEvaluateError(f"the JSONPath {path} could not be followed: {what}") from None


def json_value(spec: JsonMatch, subject: CheckSubject) -> Finding:
    """A value inside the answer, read as JSON; an answer that holds none fails."""
    is_json, root = root_of(spec, subject.answer)
    values = find_values(spec.path, root if is_json else {})
    if not is_json:
        what = "the answer as a whole is not JSON" if spec.whole else "the answer is not JSON"
        return Finding(False, what, beginning(subject.answer))
    if not values:
        whole = not spec.model_fields_set & {"equals", "matches", "json_schema"}
        passed = whole and spec.exists is False
        return Finding(passed, "nothing at this path", beginning(as_text(root)))
    if "json_schema" in spec.model_fields_set:
        problems = [violation(spec.json_schema, value) for value in values]
        valid = next((v for v, p in zip(values, problems, strict=True) if p is None), None)
        if None in problems:
            return Finding(True, "valid by the JSON Schema", beginning(as_text(valid)))
        return Finding(
            False, f"not valid by the JSON Schema: {problems[0]}", beginning(as_text(root))
        )
    if spec.matches is not None:
        searcher = Searcher()
        for value in values:
            text = plain(as_text(value))
            match = searcher.search(spec.matches, text)
            if match is not None:
                found, excerpt = f"found {beginning(text, 80)}", around(text, match.span())
                return Finding(True, found, excerpt, spans=_in_answer(subject, match[0]))
    hits = []
    if "equals" in spec.model_fields_set:
        exact = subject.case_sensitive
        hits = [one for one in values if same_value(spec.equals, one, case_sensitive=exact)]
    elif spec.matches is None and spec.exists is not False:
        hits = values
    shown = listed((beginning(as_text(value), 80) or '""' for value in values), longest=200)
    text = as_text((hits or values)[0])
    spans = _in_answer(subject, text)
    return Finding(bool(hits), f"found {shown}", beginning(text), spans=spans)


def _in_answer(subject: CheckSubject, text: str) -> tuple[EvidenceSpan, ...]:
    """Where the text of a value stands in the answer first; empty where it is spelled otherwise."""
    at = plain(subject.answer).find(text)
    return () if at < 0 else subject.in_answer((at, at + len(text)))
