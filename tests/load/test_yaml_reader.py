from __future__ import annotations

import math
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillup.errors import InvalidFilesError, Problem
from skillup.load.yaml_reader import parse_yaml, read_yaml

FILE = Path("case.yaml")


def data_of(text: str) -> dict[Any, Any]:
    return parse_yaml(text, FILE).data


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("true", True), ("True", True), ("TRUE", True), ("false", False), ("FALSE", False),
        ("on", "on"), ("off", "off"), ("yes", "yes"), ("No", "No"), ("y", "y"), ("n", "n"),
        ("", None), ("~", None), ("null", None), ("NULL", None), ("nUll", "nUll"), ("''", ""),
        ("0", 0), ("12", 12), ("-7", -7), ("+7", "+7"), ("0042", "0042"), ("-007", "-007"),
        ("0o17", "0o17"), ("0x1F", "0x1F"), ("00", "00"), ("00.5", 0.5),
        ("1_000", "1_000"), ("1:30", "1:30"), ("-", [None]), ("+", "+"),
        ("1.5", 1.5), ("1e3", 1000.0), ("1.", 1.0), (".5", 0.5), ("-1.5E-2", -0.015),
        (".", "."), ("1.2.3", "1.2.3"), ("1e", "1e"),
        (".inf", math.inf), ("-.INF", -math.inf), ("+.inf", math.inf), ("inf", "inf"),
        ("2024-01-31", "2024-01-31"), ("2024-01-31T10:00:00Z", "2024-01-31T10:00:00Z"),
        ('"true"', "true"), ("'12'", "12"), ("!!str 12", "12"),
        ("<<", "<<"), ("<<name>>", "<<name>>"), ("=", "="),
        ("a\tb", "a\tb"), ("\ta", "a"), ("[\t1,\t2\t]", [1, 2]), ("a \t# comment", "a"),
    ],
)  # fmt: skip
def test_scalars_mean_what_yaml_1_2_says(written: str, value: object) -> None:
    separator = "\n" if written == "-" else " "
    read = data_of(f"key:{separator}{written}\n")["key"]
    assert read == value
    assert isinstance(read, type(value))


def test_windows_line_ends_do_not_reach_the_texts() -> None:
    text = 'a: |\r\n  one\r\n  two\r\nb: >\r\n  x\r\n  y\r\nc: "p\r\n  q"\r\nd: 1\r\n'
    assert data_of(text) == {"a": "one\ntwo\n", "b": "x y\n", "c": "p q", "d": 1}


def test_merged_keys_come_after_explicit_ones_and_the_first_merged_wins() -> None:
    text = (
        "one: &one {a: 1, b: 1}\ntwo: &two {b: 2, c: 2}\n"
        "x: {<<: *one, b: 9}\ny: {b: 9, <<: [*two, *one]}\nz: {'<<': 1}\n"
    )
    data = data_of(text)
    assert data["x"] == {"a": 1, "b": 9}
    assert data["y"] == {"a": 1, "b": 9, "c": 2}
    assert data["z"] == {"<<": 1}


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
        (("id", "deeper"), (2, 5), (2, 1)),
    ],
)
def test_values_and_keys_are_located(
    loc: tuple[str | int, ...], value: tuple[int, int], key: tuple[int, int]
) -> None:
    document = parse_yaml(CASE, FILE)
    assert document.locate(loc) == value
    assert document.locate(loc, key=True) == key


yamlish = st.text(st.sampled_from("ab1:-?#&*!|>'\"%@`{}[],~<. \n\r\t\\=é\ufeff"), max_size=40)


@given(st.text() | yamlish | yamlish.map(lambda t: "a: " + t))
def test_any_input_is_read_or_refused_with_located_problems(text: str) -> None:
    try:
        document = parse_yaml(text, FILE)
    except InvalidFilesError as error:
        (problem,) = error.problems
        assert problem.message
        at = problem.line, problem.column
    else:
        assert isinstance(document.data, dict)
        at = document.locate(("x", 0))
    assert min(at) >= 1


def problem_in(source: str | Path) -> Problem:
    with pytest.raises(InvalidFilesError) as caught:
        read_yaml(source) if isinstance(source, Path) else parse_yaml(source, FILE)
    (problem,) = caught.value.problems
    return problem


@pytest.mark.parametrize(
    ("text", "line", "column", "phrase"),
    [
        ("a:\n\tb: 1\n", 2, 1, "found '\\t' that cannot start any token; indent with spaces, not"),
        ("a:\n  b: 1\n\tc: 2\n", 3, 1, "indent with spaces, not with tabs"),
        ("a: @foo\n", 1, 4, "found '@' that cannot start any token; put the text in quotes"),
        ('a: 1\nb: "open\nc: 2\n', 4, 1, "a quoted scalar from line 2 on, found unexpected end"),
        ("a: 'it's'\n", 1, 8, "check the indentation and the quotes above"),
        ('a: "\\d+"\n', 1, 5, "found unknown escape character; put a regex or a Windows path in"),
        ('a: "\\ud800"\n', 1, 7, "put a regex or a Windows path in single quotes"),
        ("a: [*.log]\n", 1, 6, "an alias from line 1 on, did not find expected alphabetic"),
        ("a: b: c\n", 1, 5, "mapping values are not allowed in this context; check the"),
        ("a: 1\nb\nc: 2\n", 3, 1, "could not find expected ':'; write `key: value`"),
        ("a:\n  - b\n c: 1\n", 3, 2, "a block mapping from line 1 on, did not find expected key"),
        ("a:\n  b: {c: 1\n", 3, 1, "a flow mapping from line 2 on, did not find expected ',' or"),
        ("a: 1\n---\nb: 2\n", 2, 1, "but found another document; keep one document in each file"),
        ("a: 1\nb: \x00\n", 2, 4, "unacceptable character #x0000"),
        ("a: !!python/object/apply:os.system [ls]\n", 1, 4, "the tag `!!python/object/apply:os."),
        ("!foo\na: 1\n", 1, 1, "the tag `!foo` is not allowed"),
        ("a: !!str [b]\n", 1, 4, "the tag `!!str` is not allowed"),
        ("a:\n  ? {b: 1}\n  : 2\n", 2, 5, "a list or a mapping cannot be a key"),
        ("<<: 1\n", 1, 5, "`<<` takes a mapping, or a list of mappings"),
        ("\n# only a comment\n", 1, 1, "the file is empty"),
        ("# list\n- a\n", 2, 1, "the file holds a list, not a mapping"),
        ("a: " + "1" * 5000, 1, 4, "a number of too many digits"),
    ],
)
def test_a_trap_is_one_located_message(text: str, line: int, column: int, phrase: str) -> None:
    problem = problem_in(text)
    assert phrase in str(problem)
    assert (problem.line, problem.column) == (line, column)


def test_a_duplicate_key_is_named_with_both_places() -> None:
    assert str(problem_in("a: 1\nb:\n  d: [{e: 1, e: 2}]\na: 2\n")) == (
        "case.yaml:3:14: the key `e` was given already, at line 3, column 8; keep one of the two"
    )


def test_aliases_that_multiply_are_refused() -> None:
    levels = [f"l{n}: &l{n} [{', '.join([f'*l{n - 1}'] * 10)}]" for n in range(1, 30)]
    problem = problem_in("l0: &l0 [x]\n" + "\n".join(levels))
    assert "the aliases repeat more than 1000000 characters" in problem.message
    assert problem.line in (5, 6)


@pytest.mark.parametrize(
    "text", ["a: &a [*a]\n", "a: &a {b: {c: *a}}\n", "a: &a\n  <<: *a\n  b: 1\n"]
)
def test_a_value_that_contains_itself_is_refused(text: str) -> None:
    assert "stands inside its own value" in problem_in(text).message


@pytest.mark.parametrize("unit", ["[", "{a: ", "- ", "[{a: ", "? "])
def test_deep_nesting_is_refused_and_not_a_recursion_error(unit: str) -> None:
    message = problem_in("a:\n  " + unit * 20_000).message
    # Newer versions of libyaml refuse a thousand open brackets themselves.
    assert "more than 100 levels of nesting" in message or "maximum nesting depth" in message


def test_a_file_is_utf_8_with_or_without_a_byte_order_mark(tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    path.write_bytes(b"\xef\xbb\xbfa: 1\nb: 2\n")
    assert read_yaml(path).data == {"a": 1, "b": 2}
    assert read_yaml(path).locate(("a",)) == (1, 4)
    path.write_bytes("a: 1\r\nbé: ü ".encode() + b"\xff\n")
    told = "2:7: byte 0xff at offset 14 is not UTF-8; save it as UTF-8"
    assert str(problem_in(path)) == f"{path}:{told}"


def test_what_is_no_file_is_refused_without_waiting(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with (tmp_path / "large").open("wb") as stream:
        stream.truncate(10**12)
    paths = [tmp_path / "none", tmp_path, tmp_path / "pipe", tmp_path / "large", Path("/dev/zero")]
    irregular = "this is not a regular file"
    assert [problem_in(path).message for path in paths] == [
        "the file cannot be read: No such file or directory",
        *(irregular, irregular, "the file is larger than 16 MB", irregular),
    ]
