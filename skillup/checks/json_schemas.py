"""Values against a JSON Schema of the suite's.

References lead nowhere but into the schema itself: nothing is fetched. The
regexes of a schema are searched for as those of case files are, with a time limit.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from skillup.checks.finding import CannotEvaluateError
from skillup.schema.patterns import compiled_pattern

_SECONDS = 1.0
_LONGEST = 300


def violation(schema: Any, value: Any) -> str | None:
    """What of `value` breaks the schema most; None: nothing does.

    Raises CannotEvaluateError for a reference that leads nowhere, and a regex that takes too long.
    """
    from jsonschema.exceptions import best_match
    from jsonschema.validators import Draft202012Validator, extend, validator_for
    from referencing.jsonschema import EMPTY_REGISTRY

    base = validator_for(schema, default=Draft202012Validator)
    own: Any = extend(  # type: ignore[no-untyped-call]
        base,
        {
            "pattern": _pattern,
            "patternProperties": _pattern_properties,
            "additionalProperties": _additional_properties,
        },
    )
    try:
        errors = own(
            schema, registry=EMPTY_REGISTRY, format_checker=base.FORMAT_CHECKER
        ).iter_errors(value)
        worst = best_match(errors)
    except CannotEvaluateError:
        raise
    except Exception as trouble:  # noqa: BLE001 - references, recursion: a schema has many ways
        what = f"{type(trouble).__name__}: {trouble}"
        raise CannotEvaluateError(f"the JSON Schema cannot be applied: {what}") from None
    if worst is None:
        return None
    message = worst.message if len(worst.message) <= _LONGEST else f"{worst.message[:_LONGEST]}…"
    return f"{worst.json_path}: {message}"


def _found(pattern: str, text: str) -> bool:
    try:
        return compiled_pattern(pattern, False).search(text, timeout=_SECONDS) is not None
    except ValueError as trouble:
        raise CannotEvaluateError(str(trouble)) from None
    except TimeoutError:
        raise CannotEvaluateError(
            f"the pattern /{pattern}/ of the JSON Schema took too long"
        ) from None


def _pattern(_: Any, pattern: str, value: Any, __: Any) -> Iterator[Any]:
    from jsonschema.exceptions import ValidationError

    if isinstance(value, str) and not _found(pattern, value):
        yield ValidationError(f"{value!r} does not match {pattern!r}")


def _pattern_properties(validator: Any, patterns: Any, value: Any, _: Any) -> Iterator[Any]:
    if not isinstance(value, dict):
        return
    for pattern, wanted in patterns.items():
        for key, item in value.items():
            if _found(pattern, key):
                yield from validator.descend(item, wanted, path=key, schema_path=pattern)


def _additional_properties(validator: Any, wanted: Any, value: Any, schema: Any) -> Iterator[Any]:
    from jsonschema.exceptions import ValidationError

    if not isinstance(value, dict):
        return
    known, patterns = schema.get("properties", {}), schema.get("patternProperties", {})
    for key, item in value.items():
        if key in known or any(_found(pattern, key) for pattern in patterns):
            continue
        if wanted is False:
            yield ValidationError(f"{key!r} is not one of the properties")
        else:
            yield from validator.descend(item, wanted, path=key)
