from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from skillup.errors import InvalidFilesError, Problem
from skillup.load.yaml_reader import parse_yaml

FILE = Path("case.yaml")


def data_of(text: str | bytes) -> dict[Any, Any]:
    return parse_yaml(text, FILE).data


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("true", True), ("True", True), ("TRUE", True), ("false", False), ("FALSE", False),
        ("on", "on"), ("off", "off"), ("yes", "yes"), ("No", "No"), ("y", "y"), ("n", "n"),
        ("tRUE", "tRUE"),
        ("", None), ("~", None), ("null", None), ("NULL", None), ("nUll", "nUll"), ("''", ""),
        ("0", 0), ("12", 12), ("-7", -7), ("+7", 7), ("0123", 123), ("0o17", 15), ("0x1F", 31),
        ("1_000", "1_000"), ("0b11", "0b11"), ("1:30", "1:30"), ("190:20:30", "190:20:30"),
        ("-0x1", "-0x1"), ("0o8", "0o8"), ("-", [None]), ("+", "+"),
        ("1.5", 1.5), ("1e3", 1000.0), ("1.", 1.0), (".5", 0.5), ("-1.5E-2", -0.015),
        (".", "."), ("1.2.3", "1.2.3"), ("1e", "1e"),
        (".inf", math.inf), ("-.INF", -math.inf), ("+.inf", math.inf), ("inf", "inf"),
        ("2024-01-31", "2024-01-31"), ("2024-01-31T10:00:00Z", "2024-01-31T10:00:00Z"),
        ('"true"', "true"), ("'12'", "12"), ("!!str 12", "12"), ("! 12", "12"),
        ("<<", "<<"), ("<<name>>", "<<name>>"), ("=", "="),
        ("a\tb", "a\tb"), ("\ta", "a"), ("[\t1,\t2\t]", [1, 2]), ("a \t# comment", "a"),
    ],
)  # fmt: skip
def test_scalars_mean_what_yaml_1_2_says(written: str, value: object) -> None:
    separator = "\n" if written == "-" else " "
    read = data_of(f"key:{separator}{written}\n")["key"]
    assert read == value
    assert isinstance(read, type(value))


@pytest.mark.parametrize("spelling", ["0042", "+7", "-007", "0x1F", "0o17"])
def test_a_number_in_an_unusual_spelling_gives_it_back_as_text(spelling: str) -> None:
    number = data_of(f"key: {spelling}")["key"]
    assert isinstance(number, int)
    assert str(number) == spelling


def test_windows_line_ends_do_not_reach_the_texts() -> None:
    text = 'a: |\r\n  one\r\n  two\r\nb: >\r\n  x\r\n  y\r\nc: "p\r\n  q"\r\nd: 1\r\n'
    assert data_of(text) == {"a": "one\ntwo\n", "b": "x y\n", "c": "p q", "d": 1}


def test_a_byte_order_mark_is_accepted_and_moves_nothing() -> None:
    document = parse_yaml(b"\xef\xbb\xbfa: 1\nb: 2\n", FILE)
    assert document.data == {"a": 1, "b": 2}
    assert document.locate(("a",)) == (1, 4)


def test_merged_keys_come_after_explicit_ones_and_the_first_merged_wins() -> None:
    text = (
        "one: &one {a: 1, b: 1}\ntwo: &two {b: 2, c: 2}\n"
        "x: {<<: *one, b: 9}\ny: {b: 9, <<: [*two, *one]}\nz: {'<<': 1}\n"
    )
    data = data_of(text)
    assert data["x"] == {"a": 1, "b": 9}
    assert data["y"] == {"a": 1, "b": 9, "c": 2}
    assert data["z"] == {"<<": 1}


def test_aliases_stand_for_their_anchors() -> None:
    text = "a: &a [1, {b: 2}]\nc: *a\nd: &k key\n*k : v\n"
    assert data_of(text) == {
        "a": [1, {"b": 2}], "c": [1, {"b": 2}], "d": "key", "key": "v",
    }  # fmt: skip


CASE = """\
# a comment
id: x
input:
  system: Ünïcödé 🎈
  turns:
    - content: "Delete"
      capture: [{variable: a, pattern: 'b'}]
    - content: |
        Yes
empty:
base: &base
  one: 1
merged:
  <<: *base
  two: 2
"""


@pytest.mark.parametrize(
    ("loc", "value", "key"),
    [
        ((), (2, 1), (2, 1)),
        (("id",), (2, 5), (2, 1)),
        (("input",), (4, 3), (3, 1)),
        (("input", "system"), (4, 11), (4, 3)),
        (("input", "turns", 0), (6, 7), (6, 7)),
        (("input", "turns", 0, "capture", 0, "pattern"), (7, 40), (7, 31)),
        (("input", "turns", 1, "content"), (8, 16), (8, 7)),
        (("empty",), (10, 1), (10, 1)),
        (("merged", "two"), (15, 8), (15, 3)),
        (("merged", "one"), (12, 8), (12, 3)),
        # what is not there: the nearest value around it
        (("nothing",), (2, 1), (2, 1)),
        (("input", "turns", 7, "content"), (6, 5), (5, 3)),
        (("input", "turns", "dict[str,x]"), (6, 5), (5, 3)),
        (("id", "deeper"), (2, 5), (2, 1)),
    ],
)
def test_values_and_keys_are_located(
    loc: tuple[str | int, ...], value: tuple[int, int], key: tuple[int, int]
) -> None:
    document = parse_yaml(CASE, FILE)
    assert document.locate(loc) == value
    assert document.locate(loc, key=True) == key


texts = st.text(st.characters(codec="utf-8", exclude_categories=["Cs", "Cc"]), max_size=12)
scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | texts
nested = st.recursive(
    scalars, lambda inner: st.lists(inner) | st.dictionaries(texts, inner), max_leaves=20
)


class _Dumper(yaml.SafeDumper):
    """Quotes every text, for YAML 1.1 and 1.2 disagree about plain ones; writes no aliases."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _quoted(dumper: _Dumper, text: str) -> yaml.Node:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style='"')


_Dumper.add_representer(str, _quoted)


@given(st.dictionaries(texts, nested), st.booleans())
def test_what_is_dumped_is_read_back(data: dict[str, Any], flow: bool) -> None:
    text = yaml.dump(data, Dumper=_Dumper, default_flow_style=flow, allow_unicode=True)
    assert data_of(text) == data


@given(st.dictionaries(texts, nested, min_size=1))
def test_every_value_that_is_dumped_is_located_inside_the_text(data: dict[str, Any]) -> None:
    text = yaml.dump(data, Dumper=_Dumper)
    document = parse_yaml(text, FILE)
    places = [document.locate((key,), key=True) for key in document.data]
    assert places == sorted(places)
    assert all(1 <= line <= text.count("\n") + 1 for line, _ in places)


yamlish = st.text(st.sampled_from("ab1:-?#&*!|>'\"%@`{}[],~<. \n\r\t\\=é\ufeff"), max_size=40)


def problems_of(text: str | bytes) -> list[Problem] | None:
    """What is wrong with `text`; None if it is read, and then it is a mapping with places."""
    try:
        document = parse_yaml(text, FILE)
    except InvalidFilesError as error:
        return list(error.problems)
    assert isinstance(document.data, dict)
    assert document.locate(("x", 0)) >= (1, 1)
    return None


@given(st.text() | yamlish | st.binary() | yamlish.map(lambda t: "a: " + t))
def test_any_input_is_read_or_refused_with_located_problems(text: str | bytes) -> None:
    problems = problems_of(text)
    if problems is not None:
        assert problems
        assert all(p.line >= 1 and p.column >= 1 and p.message for p in problems)
