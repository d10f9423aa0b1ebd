"""The neighbours' ``type:`` spelling of checks."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from skillup.checks import describe, evaluate
from skillup.schema.checks import Check
from tests.support.records import make_record

ANSWER = make_record("  Hello (World)\n")


@pytest.mark.parametrize(
    ("check", "passes"),
    [
        ({"type": "contains", "value": "hello"}, True),
        ({"type": "contains", "value": "hello", "case_sensitive": True}, False),
        ({"type": "icontains_any", "value": ["x", "hello"]}, True),
        ({"type": "not-contains", "value": "hello"}, False),
        ({"type": "contains-any", "value": ["x", "world"], "negate": True}, False),
        ({"type": "not-contains", "value": ["x", "world"]}, False),
        ({"type": "not-contains", "value": "World", "negate": True}, True),
        ({"type": "starts-with", "value": "Hello ("}, True),
        ({"type": "starts-with", "value": "hello"}, True),
        ({"type": "starts-with", "value": "hello", "case_sensitive": True}, False),
        ({"type": "ends-with", "value": "(World)"}, True),
        ({"type": "not-ends-with", "value": "(World)"}, False),
        ({"type": "equals", "value": "hello (world)", "case_sensitive": True}, False),
        ({"type": "regex", "value": "^ *hello"}, False),
        ({"type": "regex", "value": "^ *hello", "flags": "i"}, True),
        ({"type": "not-is-json"}, True),
        ({"type": "latency", "value": 2000}, True),
        ({"type": "cost", "threshold": 1.0}, False),
    ],
    ids=str,
)
def test_type_means_what_its_key_means(check: dict[str, Any], passes: bool) -> None:
    """V5: the other spelling of a check keeps the one rule for letter case."""
    assert evaluate(Check.model_validate(check), ANSWER.context(1)).passed is passes


def test_what_stands_beside_the_type_is_kept() -> None:
    check = Check.model_validate(
        {"type": "contains", "value": "x", "negate": True, "weight": 2.0, "name": "no x"}
    )

    assert (check.weight, check.name, describe(check)) == (2.0, "no x", 'none_of [contains "x"]')


@pytest.mark.parametrize(
    "check",
    [
        {"type": "unheard-of", "value": 1},
        {"type": "regex", "value": "a", "flags": "x"},
        {"type": "contains", "value": "a", "negate": "yes"},
    ],
)
def test_what_has_no_counterpart_is_refused(check: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        Check.model_validate(check)
