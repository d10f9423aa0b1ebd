from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillup.errors import InvalidFilesError
from skillup.importers.source import JsonText

HERE = Path("some.json")

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)  # fmt: skip


@given(values, st.sampled_from([None, 0, 2, "\t"]))
def test_reads_what_the_standard_library_writes(value: Any, indent: Any) -> None:
    assert JsonText(json.dumps(value, indent=indent), HERE).data == value


def test_surrogate_pairs_and_tabs_that_yaml_would_refuse_are_read() -> None:
    assert JsonText('{\n\t"a":\t"\\ud83d\\ude00"\n}', HERE).data == {"a": "\U0001f600"}


def test_every_value_has_its_place() -> None:
    found = JsonText('{\n  "a": [1,\n    {"b": true}]\n}', HERE)
    assert found.locate(("a", 1, "b")) == (3, 11)
    assert found.locate(("a", 1, "b"), key=True) == (3, 6)
    assert found.locate(("a",)) == (2, 8)


def test_a_place_that_is_not_there_is_the_nearest_one_around_it() -> None:
    assert JsonText('{"a": {}}', HERE).locate(("a", "b", 3)) == (1, 7)


@pytest.mark.parametrize(
    ("text", "line", "column", "said"),
    [
        ('{"a": 1,\n}', 2, 1, "a key in double quotes"),
        ('{"a" 1}', 1, 6, "`:`"),
        ("[1 2]", 1, 4, "`,` or `]`"),
        ("[1,", 1, 4, "too early"),
        ("", 1, 1, "too early"),
        ('{"a": 1} x', 1, 10, "after the end"),
        ('{"a": 1, "a": 2}', 1, 10, "twice"),
        ('["\\ud800"]', 1, 2, "surrogate"),
        ('["a\nb"]', 1, 4, "control character"),
        ("nope", 1, 1, "cannot stand"),
        ("[" * 200, 1, 102, "deeper"),
        ("1" * 5000, 1, 1, "digits"),
    ],
)
def test_what_is_not_json_is_refused_with_its_place(
    text: str, line: int, column: int, said: str
) -> None:
    with pytest.raises(InvalidFilesError) as refused:
        JsonText(text, HERE)
    (problem,) = refused.value.problems
    assert (problem.line, problem.column) == (line, column)
    assert said.casefold() in problem.message.casefold()
