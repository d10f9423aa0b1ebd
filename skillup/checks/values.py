"""Comparing values that came from JSON and YAML."""

from __future__ import annotations

import json
from functools import partial
from typing import Any

from skillup.checks.folding import folded


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
